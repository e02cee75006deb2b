#!/usr/bin/env bash
# Trains a network on MNIST, checks it in a new process and reads three digits.
#
# usage: scripts/demo.sh [OUT_DIRECTORY]      (default: out/demo)
#
# Runs on the best Vulkan device; where there is no GPU, on Mesa's lavapipe, that is, on the
# processor.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
out=${1:-out/demo}
# The images that come with the repository, also where scripts/fetch_mnist.sh has brought all.
data=data/mnist
scripts/install_packages.sh

cmake --preset release
cmake --build --preset release --target meganeura
meganeura=build/release/meganeura

echo
echo "== train"
"$meganeura" train mnist --data "$data" --out "$out"
checkpoint=$out/model.safetensors
if [ ! -s "$checkpoint" ]; then
  echo "demo.sh: training left no checkpoint $checkpoint." >&2
  exit 1
fi

echo
echo "== evaluate the checkpoint in a new process"
"$meganeura" eval mnist --data "$data" --checkpoint "$checkpoint" --json

for index in 0 7 42; do
  echo
  echo "== test image $index"
  "$meganeura" predict mnist --data "$data" --index "$index" --checkpoint "$checkpoint"
done
