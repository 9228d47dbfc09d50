# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What scripts/check.sh runs things with: deadlines, logs, counts, a second try for tests that fail, and the summary.
# The script that sources this has set $logs to an existing folder.
: "${logs:?}"

# A test that fails and then passes by itself is unstable: the run goes on, and the summary tells it. So many may be.
readonly unstable_max=3
# More failed tests of one run than these are no accident: none is tried again.
readonly again_max=10
readonly again_seconds=660

# What has not begun when the script has run for so long is left out, and what runs then is ended: both are told by the
# summary, and neither is a failure, if anything has passed. 0: there is no such limit.
time_up_seconds=0
least_seconds=30 # with less time left nothing begins
left_out=()

names=() passed=() failed=() skipped=() seconds=() unstable=0 unstable_runs=()
report=$(dirname "${BASH_SOURCE[0]}")/report.py
readonly report

record() { # NAME PASSED FAILED SKIPPED SECONDS
  names+=("$1") passed+=("$2") failed+=("$3") skipped+=("$4") seconds+=("$5")
  (($3 == 0)) || printf -- '-- FAILED: %s (log: %s)\n' "$1" "build/check/${1// /-}.log"
}

# Too late to begin? The summary will name it.
is_late() { # NAME
  ((time_up_seconds && SECONDS + least_seconds > time_up_seconds)) || return 1
  printf '\n== %s: left out, time is up\n' "$1"
  left_out+=("$1")
}

# After a command that failed: was it ended because time is up? The summary will name it, too.
is_cut() { # NAME EXIT_CODE
  ((time_up_seconds && ($2 == 124 || $2 == 137) && SECONDS >= time_up_seconds)) || return 1
  left_out+=("$1 (begun)")
}

# Runs a command with a deadline and shows and keeps what it says. Only this function starts anything long, so
# that Ctrl-C ends it: timeout passes the signal on.
running=
trap '[[ -z $running ]] || kill -TERM "$running" 2>/dev/null; echo "check: interrupted" >&2; exit 130' INT TERM
limited() { # NAME SECONDS COMMAND...
  local log=$logs/${1// /-}.log allowed=$2
  if ((time_up_seconds && SECONDS + allowed > time_up_seconds)); then
    allowed=$((time_up_seconds > SECONDS ? time_up_seconds - SECONDS : 1))
  fi
  printf '\n== %s\n' "$1"
  local output shower code
  exec {output}> >(tee -a "$log")
  shower=$!
  timeout --kill-after=60 "$allowed" "${@:3}" </dev/null >&"$output" 2>&1 {output}>&- &
  running=$!
  exec {output}>&-
  wait "$running"
  code=$?
  running=
  # Until all of it is shown, but not until a process that was left behind lets go of the pipe.
  timeout 10 tail --pid="$shower" -f /dev/null
  # 137: it had to be killed.
  if ((code == 124 || code == 137)); then
    echo "check: $1: no end within $allowed s" | tee -a "$log"
  fi
  return "$code"
}

# One check that passes or fails as a whole.
check() { # NAME SECONDS COMMAND...
  is_late "$1" && return
  local start=$SECONDS code=0
  limited "$@" || code=$?
  is_cut "$1" "$code" && return
  record "$1" $((code == 0)) $((code != 0)) 0 $((SECONDS - start))
}

# Something that others need: it counts only if it fails.
prepare() { # NAME SECONDS COMMAND...
  is_late "$1" && return 1
  local start=$SECONDS code=0
  limited "$@" || code=$?
  is_cut "$1" "$code" && return 1
  record "$1" 0 $((code != 0)) 0 $((SECONDS - start))
  ((code == 0))
}

# The command of a test runner, with @tests@ and @junit@ filled in.
run_once() { # NAME SECONDS FILE TESTS COMMAND...
  local command=("${@:5}")
  command=("${command[@]//@tests@/"$4"}")
  limited "$1" "$2" "${command[@]//@junit@/"$logs/$3.xml"}"
}

counts_of() { # FILE
  [[ -s $logs/$1.xml ]] && "$report" count "$logs/$1.xml" || echo 0 0 0
}

# A test runner that writes a JUnit file. In its command @junit@ stands for that file, and @tests@ for what it is to
# run: ALL at first, then each test that failed, by itself and once. One that passes then is unstable. A runner that
# runs nothing, or fails without a failed test (a crash, the deadline), counts as a failure and is not tried again.
run_tests() { # NAME SECONDS ctest|gtest|pytest ALL COMMAND...
  is_late "$1" && return
  local name=$1 start=$SECONDS file=${1// /-} code=0 p f s
  run_once "$name" "$2" "$file" "${@:4}" || code=$?
  is_cut "$name" "$code" && return
  read -r p f s <<<"$(counts_of "$file")"
  if ((f == 0 && (code != 0 || p + s == 0))); then
    echo "check: $name: exit code $code, $p passed, none failed: counted as one failure"
    f=1
  elif ((f > again_max)); then
    echo "check: $name: $f failed, more than $again_max: none is run again"
  elif ((f > 0)); then
    local test tests number=0 again_p again_f again_s
    mapfile -t tests < <("$report" failed "$3" "$logs/$file.xml")
    for test in "${tests[@]}"; do
      ((++number))
      run_once "$name again $number" "$again_seconds" "$file-again-$number" "$test" "${@:5}"
      read -r again_p again_f again_s <<<"$(counts_of "$file-again-$number")"
      ((again_p == 1 && again_f + again_s == 0)) || continue
      ((++p, --f, ++unstable))
    done
    ((f)) || unstable_runs+=("$name")
  fi
  record "$name" "$p" "$f" "$s" $((SECONDS - start))
}

summarize() {
  local i p=0 f=0 s=0 wrong=()
  printf '\n== summary\n%-24s %8s %8s %8s %8s\n' "" passed failed skipped seconds
  for i in "${!names[@]}"; do
    printf '%-24s %8d %8d %8d %8d%s\n' "${names[i]}" "${passed[i]}" "${failed[i]}" "${skipped[i]}" \
      "${seconds[i]}" "$( ((failed[i])) && echo '  <-- FAILED')"
    ((p += passed[i], f += failed[i], s += skipped[i]))
    ((failed[i] == 0)) || wrong+=("${names[i]}")
  done
  if ((f + unstable)); then
    echo
    "$report" problems "$logs" "${wrong[@]}" "${unstable_runs[@]}"
  fi
  if ((unstable > unstable_max)); then
    printf '\n%d tests are unstable, more than %d: they count as failed\n' "$unstable" "$unstable_max"
    ((p -= unstable, f += unstable))
  fi
  if ((${#left_out[@]})); then
    printf '\nNot run, for %d minutes were up: %s\n' $((time_up_seconds / 60)) "$(printf '%s; ' "${left_out[@]}")"
  fi
  printf '\n%d passed, %d failed, %d skipped\n' "$p" "$f" "$s"
  ((f == 0 && p > 0))
}
