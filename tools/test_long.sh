#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `make test` has no time for. Each part can be run alone, prints what it is doing, ends within its limit (minutes, below; all
# together about an hour on two idle cores), and has a line in the closing table. Nothing is skipped in silence: a part that lacks a
# tool fails and names it (tools/setup.sh long installs all of them).
# usage: tools/test_long.sh [PART...]      environment: JOBS, FUZZ_SECONDS a target, RANDOM_SECONDS, FUZZ_SEED, LIMIT_SCALE for a busy machine,
#   DATA: a folder of models, audio and stored outputs (tests/streams.py)
set -uo pipefail
cd "$(dirname "$0")/.."

. tools/test_sanitized.sh # configure, build, choose, tests, only, limited; jobs, scale
logs=build/long
mkdir -p "$logs"

declare -A about=(
    [asan]="Address- and UndefinedBehaviorSanitizer, all tests but those of faults and fuzz"
    [tsan]="ThreadSanitizer, all tests of what runs in threads"
    [faults]="allocations and writes that fail one after the other, under AddressSanitizer"
    [fuzz]="every loader on many more inputs, under the sanitizers"
    [random]="operations and training graphs of random shapes, two minutes each"
    [cpus]="unit tests on emulated CPUs without AVX-512 and without AVX2"
    [arm]="a cross build for 64-bit ARM and its unit tests and whole plans, emulated: the plain kernels where there are no others"
    [browser]="the timeline in chromium"
    [traffic]="memory traffic of a fused node, counted by an emulated cache"
    [ranks]="groups of several processes under mpirun: bits, refusals, ranks that hang"
    [python]="the wheel, built and used in a fresh environment; ONNX's own runner and PyTorch's modules on the package"
    [cli]="the command's kill and resume tests at many random moments"
    [onnx]="ONNX's own tests; with DATA, streaming models against stored outputs"
    [sweep]="the profiler's choice against the exhaustive sweep")
declare -A limit=([asan]=15 [tsan]=12 [faults]=10 [fuzz]=12 [random]=9 [cpus]=30 [arm]=20 [browser]=4 [traffic]=4 [ranks]=6 [python]=20 [cli]=8 [onnx]=10 [sweep]=15)
all=(asan tsan faults fuzz random cpus arm browser traffic ranks python cli onnx sweep)

# Tests that make allocations or writes fail.
faults="^($(grep -lE '(mem|file)_fail_after' tests/test_*.c | sed 's|.*/||; s|[.]c$||' | paste -sd '|'))$"
# Programs that print what they find in the machine, or need other programs, stay out of the emulator.
emulated='^test_(conv|conv_small|elementwise|gemm|layers_kernels|layers_ops|pools|products|program|reduce|graph|passes|fusion|safetensors|schedule)$'
# Whole plans over threads: on the emulated ARM, on the emulated x86 CPUs (where test_run takes more than its ten minutes on a busy machine).
running='^test_(run|scheduler|random_graphs)$'
plans='^test_(scheduler|random_graphs|differential|cells|forms|bands|scratch|params)$'

need() { command -v "$1" >/dev/null || { echo "test_long: found no $1, expected it: tools/setup.sh long"; return 1; }; }
# One line when a command ends, with its last words if it failed; $1 names it, $2 is its limit in seconds.
said() {
    local name=$1 started=$SECONDS status
    timeout --foreground -k 5 $(($2 * scale)) "${@:3}" >"$logs/$name.log" 2>&1
    status=$?
    if [ $status = 0 ]; then
        echo "passed $name, $((SECONDS - started)) s: $(tail -1 "$logs/$name.log")"
    elif [ $status = 77 ]; then
        tail -1 "$logs/$name.log"
        return 0
    else
        echo "FAILED $name with $status after $((SECONDS - started)) s"
        tail -20 "$logs/$name.log"
    fi
    return $status
}
export -f said
export logs scale

part_asan() {
    local options=(-DGRAPHI_BENCH=ON) # continuous integration leaves them out of the same folder
    build asan && tests asan -LE 'long|fuzz' -E "test_structure|$faults"
}
part_tsan() { only tsan -L '^threads$'; }
part_faults() { only asan -R "$faults"; }

part_fuzz() {
    choose asan -L fuzz || return 1
    printf '%s\n' "${chosen[@]}" | xargs -P "$jobs" -I{} bash -c 'said "$0" $(($1 + 120)) "build/asan/$0" 1000000000 "$2" "$1"' \
        {} "${FUZZ_SECONDS:-60}" "${FUZZ_SEED:-1000000}"
}

part_random() {
    build release test_differential test_random_graphs || return 1
    printf '%s\n' test_differential test_random_graphs |
        xargs -P "$jobs" -I{} bash -c 'said "$0" 240 "build/release/$0" "$1" "$2"' {} "${RANDOM_SECONDS:-120}" "${FUZZ_SEED:-$RANDOM}"
}

# The library must find out by itself what it may use. Nehalem has neither AVX-512 nor AVX2, Haswell has AVX2.
part_cpus() {
    need qemu-x86_64 && choose release -R "$emulated|$plans" || return 1
    export GRAPHI_TESTS_EMULATED=1
    printf '%s\n' "${chosen[@]/#/Nehalem }" "${chosen[@]/#/Haswell }" |
        xargs -P "$jobs" -L1 bash -c 'said "$0-$1" 600 qemu-x86_64 -cpu "$0" "build/release/$1"'
}

part_arm() {
    need qemu-aarch64 && need aarch64-linux-gnu-gcc && tools/arm_root.sh || return 1
    only arm -R "$emulated" && GRAPHI_TESTS_EMULATED=1 only arm -R "$running"
}

part_browser() { need chromium && build release graphi_cli && tests release -R 'test_timeline$'; }

part_traffic() { need valgrind && build release traffic && tests release -R 'test_traffic$'; }

part_ranks() { need mpirun && build release graphi_cli graphi_mpi && tests release -R 'test_ranks$'; }

part_python() {
    build release && tests release -R 'test_python_wheel$' && said backend 400 python3 tests/python_backend.py --build build/release &&
        said torch 500 python3 tests/python_torch.py --build build/release
}

part_cli() {
    build release graphi_cli bench_sweep || return 1
    local round
    for round in 1 2 3 4 5 6; do
        said "signals-$round" 300 python3 tests/test_cli_signals.py --build build/release --seed "$RANDOM" || return 1
    done
}

# The goal, 3 %, is a matter of the machine's minute, and shown; a choice that is more than 10 % behind the best, and again when that
# network is swept once more, is a fault of the profiler.
swept() {
    local size=$1 names=("${@:2}") attempt result="$logs/sweep-$1.json"
    for attempt in 1 2; do
        build/release/graphi bench sweep "${names[@]}" --size "$size" --json "$result" || [ $? = 1 ] || return 1
        python3 -c 'import json, sys
for goal in json.load(open(sys.argv[1]))["goals"]:
    if goal["value"] > 1.10:
        print(goal["name"].split()[0])' "$result" >"$result.far" || return 1
        mapfile -t names <"$result.far"
        [ ${#names[@]} -gt 0 ] || return 0
        echo "goal missed by far in attempt $attempt, $size: ${names[*]}"
    done
    return 1
}
part_onnx() { build release graphi_cli && python3 tests/conformance.py --build build/release ${DATA:+--data "$DATA"}; }
part_sweep() {
    build release graphi_cli bench_sweep && swept small lstm phased-lstm pathnet googlenet && swept medium lstm pathnet
}

if [ "${1:-}" = --inside ]; then
    "part_$2"
    exit
fi
parts=("$@")
[ $# -gt 0 ] || parts=("${all[@]}")
for part in "${parts[@]}"; do
    [ -n "${about[$part]:-}" ] || { echo "test_long: found part '$part', expected one of ${all[*]}" >&2; exit 2; }
done

# What a part is doing: tests and programs that ended, and tenths of a build.
shown() {
    local line tenth last=
    while IFS= read -r line; do
        if [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
            tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
            [ "$tenth" = "$last" ] || echo "built ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
            last=$tenth
        elif [[ $line =~ ^\ *[0-9]+/[0-9]+\ Test|^(passed|FAILED|test_long)|tests\ passed|goal|error: ]]; then
            echo "$line"
        fi
    done
}
trap 'exit 130' INT

declare -A verdict
failed=0
for part in "${parts[@]}"; do
    started=$SECONDS minutes=$((limit[$part] * scale))
    echo "== $part: ${about[$part]} (at most $minutes minutes)"
    # What it is doing goes to the terminal, everything to the log.
    limited $((minutes * 60)) tools/test_long.sh --inside "$part" | tee "$logs/$part.log" | shown
    status=${PIPESTATUS[0]}
    case $status in
    0) verdict[$part]="passed in $((SECONDS - started)) s" ;;
    124 | 137) verdict[$part]="OVER ITS LIMIT of $minutes minutes: $logs/$part.log" ;;
    *) verdict[$part]="FAILED with $status after $((SECONDS - started)) s: $logs/$part.log" ;;
    esac
    [ "$status" = 0 ] || { failed=1; tail -40 "$logs/$part.log"; }
done
echo
echo "part      result, $SECONDS s in all, at $(git describe --always --dirty 2>/dev/null || echo 'no commit')"
for part in "${parts[@]}"; do printf '%-9s %s\n' "$part" "${verdict[$part]}"; done
exit $failed
