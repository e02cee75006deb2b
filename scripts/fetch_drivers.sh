#!/usr/bin/env bash
# Unpacks further Vulkan drivers that run on the processor, none of them installed, so that tests can
# run on more than one implementation: a newer lavapipe out of Debian's backports and SwiftShader
# out of Debian's browser package.
#
# usage: scripts/fetch_drivers.sh [DIRECTORY]      (default: third_party/drivers)
#
# Leaves DIRECTORY/NAME/icd.json, and DIRECTORY/NAME/lib with the libraries to put on the library
# path. About 60 MB are downloaded once; what is there already is kept. One driver that cannot be
# had does not stop the other; the exit status is 1 then.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
drivers=${1:-$root/third_party/drivers}
mkdir -p "$drivers"
drivers=$(cd "$drivers" && pwd)
apt=$drivers/apt

for tool in apt-get dpkg-deb ldd; do
  if ! command -v "$tool" >/dev/null; then
    echo "fetch_drivers.sh: there is no $tool; the drivers are taken from Debian packages." >&2
    exit 1
  fi
done

# Package lists and archives of our own, so that the system's are left as they are.
apt_options=(
  -q -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache"
  -o "Dir::Etc::SourceList=$apt/sources.list" -o "Dir::Etc::SourceParts=-"
  -o "APT::Sandbox::User=root" -o "Debug::NoLocking=1"
)

# The mirror that the system itself uses for Debian's main archive, and its backports.
prepare_lists() {
  [ -e "$apt/ready" ] && return 0
  local codename mirror key
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
    awk -v codename="$codename" '$2 == codename {print $1; exit}')
  if [ -z "$mirror" ]; then
    echo "fetch_drivers.sh: apt knows no source of '$codename'; run apt-get update first." >&2
    return 1
  fi
  key=/usr/share/keyrings/debian-archive-keyring.gpg
  mkdir -p "$apt/lists/partial"
  printf 'deb [signed-by=%s] %s %s main\n' "$key" "$mirror" "$codename" \
    "$key" "$mirror" "$codename-backports" >"$apt/sources.list"
  # Browsers come with the security updates, which stand in a second archive.
  apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
    awk -v suite="$codename-security" -v key="$key" \
      '$2 == suite {printf "deb [signed-by=%s] %s %s main\n", key, $1, suite; exit}' \
      >>"$apt/sources.list"
  apt-get "${apt_options[@]}" update && touch "$apt/ready"
}

# get PATTERN ARGUMENT... : downloads what apt would install for the arguments.
get() {
  mkdir -p "$apt/cache/archives/partial"
  rm -f "$apt"/cache/archives/*.deb
  apt-get "${apt_options[@]}" install --yes --download-only --reinstall --no-install-recommends "$@"
}

# Says whether the driver's library finds every library that it needs.
complete() {
  local missing
  missing=$(LD_LIBRARY_PATH=$1 ldd "$2" | grep 'not found' || true)
  [ -z "$missing" ] && return 0
  echo "fetch_drivers.sh: $2 lacks libraries:" >&2
  echo "$missing" >&2
  return 1
}

# finish NAME LIBRARY API: writes the manifest, which also marks the driver as complete.
finish() {
  local library
  library=$(find "$drivers/$1/lib" -name "$2" | head -1)
  if [ -z "$library" ]; then
    echo "fetch_drivers.sh: the packages of $1 hold no $2." >&2
    return 1
  fi
  complete "$drivers/$1/lib" "$library" || return 1
  cat >"$drivers/$1/icd.json" <<JSON
{"file_format_version": "1.0.0", "ICD": {"library_path": "$library", "api_version": "$3"}}
JSON
  echo "fetch_drivers.sh: $1 is in $drivers/$1"
}

lavapipe() {
  local name=lavapipe-backports codename
  [ -e "$drivers/$name/icd.json" ] && return 0
  prepare_lists || return 1
  codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
  get -t "$codename-backports" mesa-vulkan-drivers || return 1
  local unpacked=$apt/unpacked
  rm -rf "$unpacked" "${drivers:?}/$name"
  mkdir -p "$unpacked" "$drivers/$name/lib"
  for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$unpacked"; done
  # The driver and what it links; the libraries of C and C++ must stay the system's.
  find "$unpacked" \( -name 'libvulkan_lvp.so' -o -name 'libLLVM*' -o -name 'libdrm*' \
    -o -name 'libz3.so*' -o -name 'libxcb*' -o -name 'libX*' -o -name 'libwayland*' \) \
    ! -type d -exec cp -P {} "$drivers/$name/lib/" \;
  rm -rf "$unpacked"
  finish "$name" libvulkan_lvp.so 1.4.0
}

swiftshader() {
  local name=swiftshader
  [ -e "$drivers/$name/icd.json" ] && return 0
  prepare_lists || return 1
  mkdir -p "$apt/cache/archives"
  (cd "$apt/cache/archives" && rm -f ./*.deb &&
    apt-get "${apt_options[@]}" download chromium-common) || return 1
  rm -rf "${drivers:?}/$name"
  mkdir -p "$drivers/$name/lib"
  dpkg-deb --fsys-tarfile "$apt"/cache/archives/chromium-common_*.deb |
    tar -x -C "$drivers/$name/lib" --strip-components=4 ./usr/lib/chromium/libvk_swiftshader.so ||
    return 1
  finish "$name" libvk_swiftshader.so 1.3.0
}

status=0
lavapipe || status=1
swiftshader || status=1
rm -rf "$apt/cache"
exit "$status"
