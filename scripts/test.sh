#!/usr/bin/env bash
# Builds the release preset and runs every test.
#
# usage: scripts/test.sh [CTEST_ARGUMENT...]      e.g. scripts/test.sh -L io
#
# Ends with what passed and what failed; what did not run, and why, stands above it.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
scripts/install_packages.sh

cmake --preset release
cmake --build --preset release

# Two checkouts may be tested at once: temporary files have fixed names in a folder of their own.
export TMPDIR=$root/build/release/tmp TEST_TMPDIR=$root/build/release/tmp
mkdir -p "$TMPDIR"

log=build/release/test.log
status=0
ctest --preset release "$@" 2>&1 | tee "$log" || status=$?

passed=$(grep -cE ' Test +#[0-9]+: .* +Passed ' "$log" || true)
failed=$(grep -cE ' Test +#[0-9]+: .*\*\*\*(Failed|Timeout|Exception|Not Run)' "$log" || true)
skipped=$(grep -E ' Test +#[0-9]+: .*\*\*\*Skipped' "$log" | sed -E 's/^.*Test +#[0-9]+: ([^ ]+).*/\1/' || true)

echo
if [ -n "$skipped" ]; then
  echo "Skipped:"
  while read -r test; do
    reason=$(ctest --preset release -V -R "^${test//./\\.}\$" 2>/dev/null |
      grep -A1 -E ': Skipped$' | sed -n -E 's/^[0-9]+: //; 2p' || true)
    echo "  $test: ${reason:-no reason given}"
  done <<<"$skipped"
else
  echo "Skipped: nothing."
fi
case " $* " in
  *" -L "* | *" -R "* | *" -E "* | *" -LE "*) echo "Only a selection ran: $*" ;;
esac
[ "$passed" -gt 0 ] || { echo "No test ran."; status=1; }
echo "$passed passed, $failed failed"
exit "$status"
