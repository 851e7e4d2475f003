#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `make test` has no time for. Each part can be run alone, prints what it is doing, ends within its limit (minutes, below; all
# together about an hour on two idle cores), and has a line in the closing table. Nothing is skipped in silence: a part that lacks a
# tool fails and names it (tools/setup.sh long installs all of them).
# usage: tools/test_long.sh [PART...]      environment: JOBS, FUZZ_SECONDS a target, FUZZ_SEED, LIMIT_SCALE for a busy machine
set -uo pipefail
cd "$(dirname "$0")/.."

jobs=${JOBS:-$(nproc)}
logs=build/long
mkdir -p "$logs"
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
# A fork in a process with threads is what test_identity is about: the child may start its own.
export TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1 die_after_fork=0"

declare -A about=(
    [asan]="Address- and UndefinedBehaviorSanitizer, all tests but those of faults and fuzz"
    [tsan]="ThreadSanitizer, all tests of what runs in threads"
    [faults]="allocations and writes that fail one after the other, under AddressSanitizer"
    [fuzz]="every loader on many more inputs, under the sanitizers"
    [cpus]="unit tests on emulated CPUs without AVX-512 and without AVX2"
    [arm]="a cross build for 64-bit ARM and its unit tests, emulated: the plain kernels where there are no others"
    [browser]="the timeline in chromium"
    [traffic]="memory traffic of a fused node, counted by an emulated cache"
    [cli]="the command's kill and resume tests at many random moments"
    [sweep]="the profiler's choice against the exhaustive sweep")
declare -A limit=([asan]=15 [tsan]=12 [faults]=10 [fuzz]=12 [cpus]=12 [arm]=20 [browser]=4 [traffic]=4 [cli]=8 [sweep]=5)
all=(asan tsan faults fuzz cpus arm browser traffic cli sweep)

# Tests of threads: a race elsewhere is impossible, and ThreadSanitizer makes everything ten times slower.
threaded='test_(workers|machine|combining|scheduler|policies|run|plan|memory_plan|profile|cells|data|identity)$'
faults='test_(run|plan|graph|passes|scheduler|data|safetensors|machine|memory_plan|profile|resume)$'
# Programs that print what they find in the machine, or need other programs, stay out of the emulator.
emulated='test_(conv|elementwise|gemm|layers_kernels|layers_ops|products|program|reduce|graph|passes|safetensors|schedule|cells)'

build() { cmake --preset "$1" "${@:2}" >/dev/null && cmake --build "build/$1" -j"$jobs"; }
tests() { (cd "build/$1" && ctest --output-on-failure --timeout 300 -j"$jobs" "${@:2}"); }
need() { command -v "$1" >/dev/null || { echo "test_long: found no $1, expected it: tools/setup.sh long"; return 1; }; }
# One line when a command begins and one when it ends, with its last words if it failed; $1 names it, $2 is its limit in seconds.
said() {
    local name=$1 started=$SECONDS status
    timeout --foreground -k 5 "$2" "${@:3}" >"$logs/$name.log" 2>&1
    status=$?
    if [ $status = 0 ]; then
        echo "passed $name, $((SECONDS - started)) s: $(tail -1 "$logs/$name.log")"
    else
        echo "FAILED $name with $status after $((SECONDS - started)) s"
        tail -20 "$logs/$name.log"
    fi
    return $status
}
export -f said
export logs

part_asan() { build asan && tests asan -LE 'long|fuzz' -E "test_structure|$faults"; }
part_tsan() { build tsan && tests tsan -R "$threaded"; }
part_faults() { build asan && tests asan -R "$faults"; }

part_fuzz() {
    build asan || return 1
    local seed=${FUZZ_SEED:-1000000}
    find build/asan -maxdepth 1 -name 'fuzz_*' -type f -executable | sort |
        xargs -P "$jobs" -I{} bash -c 'said "$(basename "$0")" $(($1 + 120)) "$0" 1000000000 "$2" "$1"' {} "${FUZZ_SECONDS:-60}" "$seed"
}

# The library must find out by itself what it may use. Nehalem has neither AVX-512 nor AVX2, Haswell has AVX2.
part_cpus() {
    need qemu-x86_64 && build release || return 1
    export GRAPHI_TESTS_EMULATED=1
    for cpu in Nehalem Haswell; do
        for program in build/release/test_*; do
            [ -f "$program" ] && [ -x "$program" ] && [[ $(basename "$program") =~ ^$emulated$ ]] && echo "$cpu $program"
        done
    done | xargs -P "$jobs" -L1 bash -c 'said "$0-$(basename "$1")" 600 qemu-x86_64 -cpu "$0" "$1"'
}

part_arm() {
    need qemu-aarch64 && need aarch64-linux-gnu-gcc && tools/arm_root.sh && build arm && tests arm -R "$emulated$"
}

part_browser() { need chromium && build release && tests release -R 'test_timeline$'; }

part_traffic() { need valgrind && build release && tests release -R 'test_traffic$'; }

part_cli() {
    build release || return 1
    local round
    for round in 1 2 3 4 5 6; do
        said "killed-$round" 150 python3 tests/test_cli.py --build build/release --only killed --seed "$RANDOM" &&
            said "interrupted-$round" 150 python3 tests/test_cli.py --build build/release --only interrupted --seed "$RANDOM" || return 1
    done
}

part_sweep() { build release && build/release/graphi bench sweep --size small --seconds 4 --out build/long; }

if [ "${1:-}" = --inside ]; then
    "part_$2"
    exit
fi
parts=("$@")
[ $# -gt 0 ] || parts=("${all[@]}")
for part in "${parts[@]}"; do
    [ -n "${about[$part]:-}" ] || { echo "test_long: found part '$part', expected one of ${all[*]}" >&2; exit 2; }
done

declare -A verdict
failed=0
for part in "${parts[@]}"; do
    started=$SECONDS minutes=$((limit[$part] * ${LIMIT_SCALE:-1}))
    echo "== $part: ${about[$part]} (at most $minutes minutes)"
    # What it is doing goes to the terminal, everything to the log.
    timeout -k 10 "$((minutes * 60))" "$0" --inside "$part" 2>&1 | tee "$logs/$part.log" |
        grep --line-buffered -E '^ *[0-9]+/[0-9]+ Test|^(passed|FAILED|test_long)|tests passed|goal|error:'
    status=${PIPESTATUS[0]}
    case $status in
    0) verdict[$part]="passed in $((SECONDS - started)) s" ;;
    124 | 137) verdict[$part]="OVER ITS LIMIT of $minutes minutes: $logs/$part.log" ;;
    *) verdict[$part]="FAILED with $status after $((SECONDS - started)) s: $logs/$part.log" ;;
    esac
    [ "$status" = 0 ] || { failed=1; tail -40 "$logs/$part.log"; }
done
echo
echo "part      result, $SECONDS s in all"
for part in "${parts[@]}"; do printf '%-9s %s\n' "$part" "${verdict[$part]}"; done
exit $failed
