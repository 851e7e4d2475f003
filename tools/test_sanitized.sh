#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The C unit tests (ctest's label `unit`) under AddressSanitizer and UndefinedBehaviorSanitizer, and those of them that start threads
# (`threads`) under ThreadSanitizer: what continuous integration runs after `make test`. Labels are given in cmake/tests.cmake.
# A part fails if a test fails or does not build. The time for all of it is limited: what is left when it is over is told, and no failure.
# usage: tools/test_sanitized.sh [asan|tsan]...      environment: JOBS, LIMIT_SCALE for a busy machine
# Another script may source it for its functions.
set -uo pipefail

jobs=${JOBS:-$(nproc)} scale=${LIMIT_SCALE:-1}
options=() # of the configuration
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
# A fork in a process with threads is what test_identity is about: the child may start its own.
export TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1 die_after_fork=0"

configure() { cmake --preset "$1" -DGRAPHI_TEST_SECONDS=$((300 * scale)) "${options[@]}" >/dev/null; }
build() { configure "$1" && cmake --build "build/$1" -j"$jobs" ${2:+--target "${@:2}"}; }
tests() { ctest --test-dir "build/$1" --output-on-failure --no-tests=error -j"$jobs" "${@:2}"; }
# Builds no more than the tests that options of ctest choose; they are programs of their names, which are left in `chosen`.
choose() {
    configure "$1" || return 1
    mapfile -t chosen < <(ctest --test-dir "build/$1" -N "${@:2}" | sed -n 's/^ *Test *#[0-9]*: //p')
    [ ${#chosen[@]} -gt 0 ] || { echo "${0##*/}: found no test by ${*:2}, expected some"; return 1; }
    cmake --build "build/$1" -j"$jobs" --target "${chosen[@]}"
}
only() { choose "$@" && tests "$@"; }
# A command in a process group of its own, so that the limit, in seconds, and Ctrl-C end all that it has started; what runs in the
# background would ignore Ctrl-C otherwise, also in tests of it.
limited() {
    env --default-signal=INT,QUIT timeout -k 10 "$1" "${@:2}" 2>&1 &
    # shellcheck disable=SC2064
    trap "kill $!" INT TERM
    wait $!
}
[ "${BASH_SOURCE[0]}" = "$0" ] || return 0

cd "$(dirname "$0")/.."
options=(-DGRAPHI_BENCH=OFF)
part_asan() { only asan -L '^unit$'; }
part_tsan() { only tsan -L '^unit$' -L '^threads$'; }
if [ "${1:-}" = --inside ]; then
    "part_$2"
    exit
fi

# Minutes from the beginning at which a part must have ended: the second one has what the first one leaves.
declare -A until=([asan]=15 [tsan]=25)
[ $# -gt 0 ] || set -- asan tsan
for part in "$@"; do
    [ -n "${until[$part]:-}" ] || { echo "${0##*/}: found part '$part', expected asan or tsan" >&2; exit 2; }
done
failing='\*\*\*(Failed|Timeout|Not Run)|SegFault|Illegal|Numerical|Subprocess aborted'
trap 'exit 130' INT
mkdir -p build
failed=0 results=()
for part in "$@"; do
    started=$SECONDS left=$((until[$part] * 60 * scale - SECONDS)) log=build/sanitized-$part.log
    echo "== $part: at most $left s"
    [ $left -gt 0 ] || { results+=("$part RAN OUT OF TIME before it began"); continue; }
    limited "$left" tools/test_sanitized.sh --inside "$part" | tee "$log" | grep --line-buffered -vE '^\[[0-9]+/[0-9]+\] |^ *Start +[0-9]+:'
    status=${PIPESTATUS[0]}
    took="after $((SECONDS - started)) s"
    # What had failed before the time was over is a failure all the same; what the end itself stopped is called otherwise.
    if [ "$status" = 0 ]; then
        results+=("$part passed $took: $(grep 'tests passed' "$log")")
    elif [[ $status =~ ^(124|137)$ ]] && ! grep -qE "$failing" "$log"; then
        results+=("$part RAN OUT OF TIME $took: $(grep -c ' Passed ' "$log") tests had passed, none had failed, the others did not run")
    else
        results+=("$part FAILED with $status $took: $log")
        failed=1
    fi
done
printf '%s\n' "${results[@]}"
exit $failed
