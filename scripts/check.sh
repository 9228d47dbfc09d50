#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs every test. Goes on after a failure, so that one run shows them all; the end says which failed, and why.
set -uo pipefail

usage() {
  cat <<'TEXT'
usage: scripts/check.sh [--all] [--minutes N]

Installs what is missing, then runs what every change must pass: layout and style; the unit, integration and PyTorch
tests on a release build whose warnings are errors; clang-tidy over the files that have changed since it found nothing;
and under ASan+UBSan and TSan the tests in which memory or threads can go wrong.
A test that fails is run once more, by itself. If it passes then, it is unstable: the end lists it, and up to three of
them are no failure. Logs and JUnit files are left in build/check/. Exits with 1 if anything failed.

  --all         also: the other tests under ASan+UBSan and TSan, the network's tests on a newer UCX, the PyTorch
                tests on the oldest supported torch, the wheel in other bare systems, and builds there
  --minutes N   what has not ended after N minutes is left out, and the end says what that is; 0: nothing is
                (80; with --all 0)
TEXT
}

all=0 minutes=
while (($#)); do
  case $1 in
    --all) all=1 ;;
    --minutes)
      [[ ${2:-} =~ ^[0-9]{1,4}$ ]] || { echo "check: --minutes: '${2:-}' is not a number of minutes" >&2; exit 2; }
      minutes=$((10#$2))
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; echo "check: unknown argument '$1'" >&2; exit 2 ;;
  esac
  shift
done
[[ -n $minutes ]] || minutes=$((all ? 0 : 80))

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
readonly root=$PWD torch_oldest=2.7.1 ucx_newest=1.22
readonly logs=$root/build/check
readonly python=$root/build/venv/bin/python
mkdir -p "$logs"
rm -f "$logs"/*

# shellcheck source=scripts/check_lib/runs.sh
source scripts/check_lib/runs.sh
time_up_seconds=$((minutes * 60))

cxx_files() { git ls-files --cached --others --exclude-standard '*.cpp' '*.h'; }

layout() {
  local files
  mapfile -t files < <(cxx_files)
  ((${#files[@]})) || { echo "no C++ files found"; return 1; }
  clang-format --dry-run -Werror "${files[@]}"
}
export -f cxx_files layout

build() { # PRESET [CMAKE OPTION...] [-- TARGET...]
  local preset=$1 options=() targets=()
  shift
  while (($#)) && [[ $1 != -- ]]; do options+=("$1"); shift; done
  (($#)) && targets=(--target "${@:2}")
  prepare "configure $preset" 300 cmake --preset "$preset" "${options[@]}" &&
    prepare "build $preset" 3000 cmake --build --preset "$preset" "${targets[@]}"
}

unit_tests() { # PRESET SECONDS [REGEX]
  run_tests "unit $1" "$2" ctest "${3:-.}" "${plain_addresses[@]}" ctest --test-dir "build/$1" -R @tests@ \
    -j $(($(nproc) + 1)) --timeout 600 --output-on-failure --no-tests=error --output-junit @junit@
}

# braid as it was built, on a later UCX. Where that cannot be downloaded it is no failure.
newer_ucx() { # VERSION
  local name="net UCX $1" start=$SECONDS
  is_late "$name" && return
  if ! limited "$name" 120 scripts/setup --no-torch --ucx "$1"; then
    echo "check: $name: skipped: UCX $1 cannot be had here"
    record "$name" 0 0 1 $((SECONDS - start))
    return
  fi
  BRAID_TEST_TCP=ucx run_tests "$name" 300 gtest '*' scripts/with-ucx "$1" build/release/bin/net_test \
    --gtest_filter=@tests@ --gtest_output=xml:@junit@
}

pytest_run() { # NAME SECONDS PYTHON FOLDER [PYTEST OPTION...]
  run_tests "$1" "$2" pytest "$4" "${plain_addresses[@]}" "$3" -m pytest @tests@ "${@:5}" -ra --timeout 600 \
    --durations 5 -p no:cacheprovider --rootdir "$root" -o junit_family=xunit1 --junitxml @junit@
}

# Tests with daemons wait more than they compute. A file's tests share clusters, so they stay together; conftest.py lets
# the long files begin first.
readonly two_files_at_once=(-n 2 --dist loadfile --no-loadscope-reorder)
integration_run() { # NAME SECONDS [PYTEST OPTION...]
  pytest_run "$1" "$2" "$python" tests/integration "${two_files_at_once[@]}" "${@:3}"
}

# Rooms whose tests a usual check runs under a sanitizer. ASan: what takes foreign input, or keeps memory for others.
# TSan: what has threads; tests/unit/CMakeLists.txt leaves out the others altogether.
readonly asan_rooms=(base gpu proto loop ipc control net codec engine update timeline messages operation planning
  coordinator job telling config web client device levels daemon fake_cuda fake_nccl)
readonly tsan_rooms=(base gpu loop ipc control net engine operation coordinator job telling web client device levels
  daemon fake_cuda fake_nccl)
# What the integration tests start.
readonly programs=(braidd braidctl braid braid-bench braid-delay-line braid-example-trainer
  device_programs device_outage)

# GCC 12's sanitizers need the usual address layout: newer kernels randomize more bits than they can take.
plain_addresses=()
sanitize() { # PRESET ROOM...
  local preset=$1 rooms=("${@:2}") supp=$root/tests/sanitizers
  export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_init_order=1:suppressions=$supp/asan.supp
  export LSAN_OPTIONS=suppressions=$supp/lsan.supp:print_suppressions=0
  export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
  export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions=$supp/tsan.supp
  if setarch "$(uname -m)" -R true 2>/dev/null; then
    plain_addresses=(setarch "$(uname -m)" -R)
  fi
  local targets=() regex=. tests=()
  if ((all)); then
    # Without those of scripts, of command lines, of packages and of documents: Python, and code that the unit tests
    # run through.
    local name
    for name in check cluster_tool compare help image kubernetes measure packages plan plot pods slurm \
      spec_vectors style_check wheel; do
      tests+=("--ignore-glob=*/test_$name*")
    done
  else
    targets=(-- "${programs[@]}" "${rooms[@]/%/_test}")
    regex="^($(IFS='|'; echo "${rooms[*]}"))_test\\."
    tests=(-m "sanitized and not plain")
  fi
  if build "$preset" "${targets[@]}"; then
    unit_tests "$preset" 1200 "$regex"
    BRAID_BUILD=$root/build/$preset integration_run "integration $preset" 1800 "${tests[@]}"
  fi
  plain_addresses=()
  unset ASAN_OPTIONS LSAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS
}

# What finds most comes first: a slow machine leaves out the end.
setup=(scripts/setup --prometheus --browser --helm)
if ((all)); then
  setup+=(--torch "$torch_oldest")
  export BRAID_TEST_ALL=1  # tests that a usual check leaves out
fi
prepare "setup" 3000 "${setup[@]}"
check "layout" 300 bash -c layout
check "style" 60 scripts/style-check
is_built=0
if build release; then
  is_built=1
  unit_tests release 600
  integration_run "integration release" 1800
  BRAID_TEST_TCP=ucx integration_run "integration over UCX" 900 -m transports
  pytest_run "python newest torch" 1800 "$python" tests/python "${two_files_at_once[@]}"
  check "tidy" 2400 scripts/tidy build/release
fi
sanitize asan "${asan_rooms[@]}"
sanitize tsan "${tsan_rooms[@]}"
# Each file by itself, which the others join: does it include what it needs?
((all)) && build debug
if ((all && is_built)); then
  newer_ucx "$ucx_newest"
  pytest_run "python torch $torch_oldest" 1800 "build/venv-torch-$torch_oldest/bin/python" tests/python \
    "${two_files_at_once[@]}" -m "not once"
  BRAID_TEST_BUILDS=1 pytest_run "builds elsewhere" 9000 "$python" tests/integration/test_builds.py
fi
summarize
