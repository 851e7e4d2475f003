#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `make test` has no time for. Each part can be run alone; a closing table says what passed. Nothing is skipped in silence: a
# part that lacks a tool fails and names it (tools/setup.sh long installs all of them).
#   asan      Address- and UndefinedBehaviorSanitizer, all tests
#   tsan      ThreadSanitizer, all tests of what runs in threads
#   faults    allocations and writes that fail one after the other, under AddressSanitizer
#   fuzz      every loader on many more inputs, under the sanitizers
#   cpus      unit tests on emulated CPUs without AVX-512 and without AVX2
#   browser   the timeline in chromium
#   cli       the command's kill and resume tests at many random moments
#   sweep     the profiler's choice against the exhaustive sweep
# usage: tools/test_long.sh [PART...]
set -uo pipefail
cd "$(dirname "$0")/.."
parts=("$@")
[ $# -gt 0 ] || parts=(asan tsan faults fuzz cpus browser cli sweep)
jobs=${JOBS:-$(nproc)}
logs=build/long
mkdir -p "$logs"
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1"

# Tests of threads: a race elsewhere is impossible, and ThreadSanitizer makes everything ten times slower.
threaded='test_(workers|machine|combining|scheduler|policies|run|plan|memory_plan|profile|cells|data|cli)$'
# Programs that print what they find in the machine, or need other programs, stay out of the emulator.
emulated='test_(conv|elementwise|gemm|layers_kernels|layers_ops|products|program|reduce|graph|passes|safetensors|schedule|cells)'

build() { cmake --preset "$1" "${@:2}" && cmake --build "build/$1" -j"$jobs"; }
tests() { (cd "build/$1" && ctest --output-on-failure --timeout 1200 "${@:2}"); }
need() { command -v "$1" >/dev/null || { echo "test_long: found no $1, expected it: tools/setup.sh long"; return 1; }; }

part_asan() { build asan && tests asan -LE 'long|fuzz' -E test_structure; }
part_tsan() { build tsan && tests tsan -R "$threaded"; }
part_faults() { build asan && tests asan -R 'test_(run|plan|graph|passes|scheduler|data|safetensors|machine|memory_plan|profile)$'; }

part_fuzz() {
    build asan || return 1
    local target status=0
    for target in build/asan/fuzz_*; do
        [ -x "$target" ] && [ -f "$target" ] || continue
        echo "$target"
        timeout 900 "$target" "${FUZZ_ITERATIONS:-1000000}" || status=1
    done
    return $status
}

# One emulated CPU, all unit tests. The library must find out by itself what it may use.
emulate() {
    local program status=0
    for program in build/release/test_*; do
        [ -x "$program" ] && [[ $(basename "$program") =~ ^$emulated$ ]] || continue
        echo "$1: $(basename "$program")"
        GRAPHI_TESTS_EMULATED=1 timeout 1800 qemu-x86_64 -cpu "$1" "$program" >"$logs/emulated.log" 2>&1 || {
            echo "$1: $(basename "$program") failed"
            tail -20 "$logs/emulated.log"
            status=1
        }
    done
    return $status
}

part_cpus() {
    need qemu-x86_64 && build release || return 1
    local status=0
    emulate Nehalem || status=1 # neither AVX-512 nor AVX2
    emulate Haswell || status=1 # AVX2, not AVX-512
    return $status
}

part_browser() { need chromium && build release && tests release -L long; }

part_cli() {
    build release || return 1
    local round
    for round in 1 2 3 4 5 6 7 8; do
        python3 tests/test_cli.py --build build/release --only killed --seed "$RANDOM" || return 1
        python3 tests/test_cli.py --build build/release --only interrupted --seed "$RANDOM" || return 1
    done
}

part_sweep() { build release && build/release/graphi bench sweep --out build/long; }

declare -A verdict
failed=0
for part in "${parts[@]}"; do
    if ! declare -F "part_$part" >/dev/null; then
        echo "test_long: found part '$part', expected asan, tsan, faults, fuzz, cpus, browser, cli or sweep" >&2
        exit 2
    fi
done
for part in "${parts[@]}"; do
    echo "== $part"
    started=$SECONDS
    if "part_$part" >"$logs/$part.log" 2>&1; then
        verdict[$part]="passed in $((SECONDS - started)) s"
    else
        verdict[$part]="FAILED after $((SECONDS - started)) s: $logs/$part.log"
        failed=1
        tail -40 "$logs/$part.log"
    fi
    echo "   ${verdict[$part]}"
done
echo
echo "summary"
for part in "${parts[@]}"; do printf '  %-8s %s\n' "$part" "${verdict[$part]}"; done
exit $failed
