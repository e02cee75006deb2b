#!/usr/bin/env bash
# Runs the device tests on every Vulkan driver that works on the processor: the installed lavapipe at
# three subgroup widths, and the drivers that scripts/fetch_drivers.sh unpacks.
#
# usage: scripts/test_drivers.sh [BUILD_DIRECTORY [DRIVER...]]
# e.g.   scripts/test_drivers.sh build/release swiftshader
#
# Prints the failures, then one row for each driver. A driver that is absent is a row that says so.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$root/build/release}" && pwd)
drivers=$root/third_party/drivers
logs=$build/drivers
shift || true
selected=" $* "
# A driver that hangs must not keep the others from their turn.
seconds_each=${MEGANEURA_DRIVER_SECONDS:-600}
programs=(mg_device_vulkan_test mg_strict_device_test tests/mg_device_ops_test)
mkdir -p "$logs"

for program in meganeura "${programs[@]}"; do
  if [ ! -x "$build/$program" ]; then
    echo "test_drivers.sh: $build has no $program; build it first." >&2
    exit 1
  fi
done

status=0
rows=()

wanted() { [ "$selected" = "  " ] || [[ $selected == *" $1 "* ]]; }

# count WORD FILE : the number of tests whose outcome the log gives as WORD.
count() { grep -cE "^\[ +$1 +\] [^ ]+.* \([0-9]+ ms\)$" "$2" || true; }

# failures FILE : what the failed tests printed, at most 12 lines each.
failures() {
  awk '/^\[ RUN/ {text = ""; lines = 0; next}
       /^\[  FAILED  \].* ms\)$/ {print text $0; next}
       lines < 12 {text = text "    " $0 "\n"; ++lines}' "$1"
}

# Tests that a driver fails by its own fault, for the reason beside them.
exclusions() {
  case $1 in
    # It rounds large u32 twice on their way to f32, where Vulkan demands one rounding; of fma, min
    # and max it flushes some denormal operands and keeps others.
    swiftshader) echo '*EmitDevice.EveryOpGivesTheExactResult*' ;;
  esac
}

# run NAME VARIABLE=VALUE... : the tests in that environment, on the first Vulkan device.
run() {
  local name=$1 width passed=0 failed=0 skipped=0 note= excluded
  shift
  excluded=$(exclusions "$name")
  [ -z "$excluded" ] || note=" Left out: $excluded."
  width=$(env "$@" "$build/meganeura" devices | awk '/interpreter$/ {past = 1}
      /subgroup size/ && !past && !width {width = $3} END {print width}')
  if [ -z "$width" ]; then
    rows+=("$(printf '%-24s %s' "$name" "no Vulkan device")")
    status=1
    return
  fi
  for program in "${programs[@]}"; do
    local log="$logs/$name.${program##*/}.log" code=0
    mkdir -p "$logs/$name.tmp"
    env "$@" MEGANEURA_DEVICE=0 TMPDIR="$logs/$name.tmp" timeout "$seconds_each" "$build/$program" \
      --gtest_filter="-$excluded" >"$log" 2>&1 || code=$?
    passed=$((passed + $(count OK "$log")))
    failed=$((failed + $(count FAILED "$log")))
    skipped=$((skipped + $(count SKIPPED "$log")))
    failures "$log"
    if [ "$code" -gt 1 ]; then
      failed=$((failed + 1))
      note+=" ${program##*/} ended with $code in $(grep -oE '^\[ RUN +\] .*' "$log" | tail -1 | cut -c14-)."
    fi
  done
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ] || status=1
  rows+=("$(printf '%-24s %8s %7d %7d %8d %s' "$name" "$width" "$passed" "$failed" "$skipped" \
    "$note")")
}

# unpacked NAME : runs one of the drivers that scripts/fetch_drivers.sh brings.
unpacked() {
  local manifest=$drivers/$1/icd.json
  if [ ! -e "$manifest" ]; then
    rows+=("$(printf '%-24s %s' "$1" "skipped: absent, run scripts/fetch_drivers.sh")")
    return
  fi
  # The first name is for new loaders, the second for old ones.
  run "$1" "VK_DRIVER_FILES=$manifest" "VK_ICD_FILENAMES=$manifest" \
    "LD_LIBRARY_PATH=$drivers/$1/lib"
}

for bits in 128 256 512; do
  if wanted "lavapipe-$bits"; then run "lavapipe-$bits" "LP_NATIVE_VECTOR_WIDTH=$bits"; fi
done
for name in lavapipe-backports swiftshader; do
  if wanted "$name"; then unpacked "$name"; fi
done

printf '%-24s %8s %7s %7s %8s\n' driver subgroup passed failed skipped
printf '%s\n' "${rows[@]}"
exit "$status"
