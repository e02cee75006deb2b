#!/usr/bin/env bash
# Installs the Debian packages of scripts/packages.txt, and those named as arguments, that are
# missing. Without root or apt-get it names them and leaves the rest to the caller.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
mapfile -t wanted < <(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$root/scripts/packages.txt")
wanted+=("$@")

if ! command -v dpkg-query >/dev/null; then
  echo "install_packages.sh: this is not Debian; please provide: ${wanted[*]}" >&2
  exit 0
fi
missing=()
for package in "${wanted[@]}"; do
  if ! dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$'; then
    missing+=("$package")
  fi
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "install_packages.sh: please install: ${missing[*]}" >&2
  exit 0
fi
echo "Installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -y -q --no-install-recommends "${missing[@]}"
