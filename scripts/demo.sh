#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh Debian 12 machine to a training on four emulated nodes, over gloo and through braid.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: scripts/demo.sh [--steps N] [--nodes N] [--skip-setup]

Installs what is missing (scripts/setup), builds braid, emulates a small cloud on this machine (network
namespaces; NIC 2 Gbit/s, each TCP flow at most 0.5 Gbit/s) and trains examples/fashion_mnist.py on it twice:
over PyTorch's gloo, then the same file through braid. Ends with a table and a picture, in build/demo/.

  --steps N      training steps of each run (200)
  --nodes N      nodes, one trainer each (4)
  --skip-setup   install nothing
TEXT
}

say() { printf '\n== %s\n' "$*"; }
fail() { echo "demo: $*" >&2; exit 1; }

steps=200 nodes=4 setup=1
while (($#)); do
  case $1 in
    --steps | --nodes)
      [[ ${2:-} =~ ^[1-9][0-9]{0,5}$ ]] || fail "$1: '${2:-}' is not a positive number"
      printf -v "${1#--}" %s "$2"
      shift
      ;;
    --skip-setup) setup=0 ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; echo "demo: there is no option '$1'" >&2; exit 2 ;;
  esac
  shift
done
# The report leaves out the first steps as warm-up.
((steps > 20)) || fail "--steps $steps: take more than 20, the first 10 are warm-up"
((nodes > 1)) || fail "--nodes $nodes: one node alone has nothing to communicate"

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly output=$PWD/build/demo
readonly run_seconds_max=900

if ((setup)); then
  say "Installing what is missing"
  scripts/setup
fi

say "Building (build/release)"
mkdir -p build
cmake --preset release >build/configure.log || fail "cmake failed: see build/configure.log"
cmake --build --preset release --target braid braidd

# Namespaces and traffic shaping need root.
as_root=()
if ((EUID != 0)) && command -v sudo >/dev/null; then
  as_root=(sudo)
fi
cluster=("${as_root[@]}" scripts/cluster --nodes "$nodes")
shaping=(--nic-mbit 2000 --flow-mbit 500)
network="$nodes nodes, NIC 2 Gbit/s, each TCP flow at most 0.5 Gbit/s"
report=(--nic-gbit 2)
if ! complaint=$("${cluster[@]}" "${shaping[@]}" --no-daemons --timeout 60 -- true 2>&1); then
  say "No emulated cloud here; going on with $nodes nodes on loopback addresses, unshaped, because:"
  echo "$complaint"
  shaping=(--loopback)
  network="$nodes nodes on loopback addresses, unshaped"
  report=()
fi
cluster+=("${shaping[@]}" --timeout "$run_seconds_max")

# Folders of an earlier run may belong to root.
"${as_root[@]}" rm -rf "$output"
mkdir -p "$output"
script=(examples/fashion_mnist.py --steps "$steps" --output)
# Addresses of the emulated nodes have no names, of which torch warns once per connection.
export TORCH_CPP_LOG_LEVEL=${TORCH_CPP_LOG_LEVEL:-ERROR}

say "Training over gloo ($network)"
"${cluster[@]}" --no-daemons -- build/venv/bin/python "${script[@]}" "$output/gloo"

say "Training through braid: the same file, unchanged"
"${cluster[@]}" --daemon build/release/bin/braidd --keep-logs "$output/logs" \
  -- build/venv/bin/braid-run "${script[@]}" "$output/braid"
# A comparison of gloo with gloo would look fine, too.
grep -q "all $nodes ranks on .* joined" "$output/logs/node0.log" \
  || fail "the second training did not go through braid: see $output/logs"

say "Result"
build/venv/bin/python scripts/demo_report.py --run gloo "$output/gloo" --run braid "$output/braid" \
  --network "$network" "${report[@]}" --picture "$output/demo.svg"
