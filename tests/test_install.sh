#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs into a temporary folder and uses what is there as a user would: a program built through pkg-config and
# through the CMake package, shared and static, outside the tree; the programs of README.md and docs/c-api.md, the
# examples; the command, its man page, completion and benchmarks.
# usage: test_install.sh SOURCE BUILD
set -eu
source=$1 build=$2
folder=$(mktemp -d "${TMPDIR:-/tmp}/graphi-install.XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
fail() { echo "test_install: $*" >&2; exit 1; }

cmake --install "$build" --prefix "$folder/first" >"$folder/log" 2>&1 || { cat "$folder/log"; fail "found no installation"; }
mv "$folder/first" "$folder/prefix" # what is installed may be moved
prefix=$folder/prefix
mkdir "$folder/user"
cp "$source/tests/external/train.c" "$source/tests/external/CMakeLists.txt" "$folder/user"
cd "$folder/user"

benchmarks=
[ -d "$build/bench" ] && benchmarks="libexec/graphi/sweep libexec/graphi/frameworks-peers/regression_sklearn.py"
for file in bin/graphi share/man/man1/graphi.1 share/bash-completion/completions/graphi include/graphi/graphi.h \
    share/graphi/machines/synthetic-1024.json share/graphi/from_pytorch.py $benchmarks; do
    [ -s "$prefix/$file" ] || fail "found no $file, expected it to be installed"
done

library=$(dirname "$(find "$prefix" -name libgraphi.a)")
PKG_CONFIG_PATH=$library/pkgconfig
export PKG_CONFIG_PATH
${CC:-cc} -std=c11 ${GRAPHI_TEST_FLAGS:-} train.c -o train_shared $(pkg-config --cflags --libs graphi)
LD_LIBRARY_PATH=$library ./train_shared || fail "shared, through pkg-config: the loss did not fall"
# Only ours is linked statically: the libraries below it stay shared.
${CC:-cc} -std=c11 ${GRAPHI_TEST_FLAGS:-} train.c -o train_static $(pkg-config --cflags graphi) "$library/libgraphi.a" \
    $(pkg-config --static --libs graphi | sed 's/ *-lgraphi / /')
./train_static || fail "static, through pkg-config: the loss did not fall"

cmake -S . -B build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="${GRAPHI_TEST_FLAGS:-}" >"$folder/log" 2>&1 &&
    cmake --build build >>"$folder/log" 2>&1 || { cat "$folder/log"; fail "found no build through the CMake package"; }
./build/train_graphi || fail "graphi::graphi: the loss did not fall"
./build/train_static || fail "graphi::static: the loss did not fall"

# The whole program of README compiles, runs, and finds what it checks.
block() { sed -n '/^```c$/,/^```$/p' "$1" | sed '/^```/d'; }
block "$source/README.md" >readme.c
${CC:-cc} -Werror ${GRAPHI_TEST_FLAGS:-} readme.c -o readme $(pkg-config --cflags --libs graphi) || fail "README.md: found no program"
LD_LIBRARY_PATH=$library ./readme >"$folder/log" || fail "README.md: found a program whose loss does not fall"

# The examples keep what their comments promise.
examples=$prefix/share/doc/graphi/examples programs=$folder/examples
cmake -S "$examples" -B "$programs" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_FLAGS="-Wall -Wextra -Werror ${GRAPHI_TEST_FLAGS:-}" >"$folder/log" 2>&1 &&
    cmake --build "$programs" >>"$folder/log" 2>&1 || { cat "$folder/log"; fail "found no build of the examples"; }

train() { "$programs/train" "$1" >>log || fail "train $1: found status $?: $(cat log)"; }
mkdir once twice
cd "$folder/user/once" && train 228
accuracy=$(sed -n 's/^step 228 .*accuracy \([0-9]*\).*/\1/p' log)
[ "${accuracy:-0}" -ge 80 ] || { cat log; fail "train: found an accuracy of '$accuracy', expected 80 at least"; }
cd "$folder/user/twice" && train 100 && train 228
[ "$(tail -1 log)" = "$(tail -1 ../once/log)" ] || { cat log; fail "train: found another state after resuming"; }
cd "$folder/user"

"$programs/tree" 100 >log && awk '/^step 100/ { found = $NF } END { exit !(found > 0.9) }' log ||
    { cat log; fail "tree: found no accuracy above 0.9"; }
"$programs/lines" 60 >log && awk '/^step  60/ { found = $NF } END { exit !(found && found < 2) }' log ||
    { cat log; fail "lines: found no loss below 2"; }
"$programs/serve" 0.2 >log || fail "serve: found status $?: $(cat log)"
[ "$(grep -c ' x ' log)" = 3 ] || { cat log; fail "serve: found no three rows"; }
for words in "serve soon" "serve -h" "serve 1 lstm" "serve 1 dcgan" "train soon" "train 0"; do
    "$programs"/$words >log 2>&1 && fail "$words: found status 0, expected a refusal"
    grep -q 'usage: \|expected' log || { cat log; fail "$words: found no word on what is expected"; }
done

"$programs/schedule" "$examples/schedule.dag" "$prefix/share/graphi/machines/xeon-phi-7250.json" 4 >log &&
    [ -s schedule.html ] && awk '$3 ~ /^[0-9.]+$/ { rows++; below += $2 < $3; us[$1] = $2 }
    END { exit !(rows >= 12 && !below && us["critical-path"] < us["naive"]) }' log ||
    { cat log; fail "schedule: found no timeline, a makespan below its bound, or critical path first behind the queue"; }
printf 'a 5\nb x a\n' >wrong.dag
"$programs/schedule" wrong.dag 2>log && fail "schedule: found success of a wrong line"
grep -q "^schedule: error: INVALID: wrong.dag:2: found 'x'" log || { cat log; fail "schedule: found another message"; }

python=$source/build/peers/pytorch/bin/python
[ -x "$python" ] || python=python3
if "$python" -c 'import numpy' 2>/dev/null; then
    "$python" -B "$source/tests/pytorch_weights.py" "$prefix/share/graphi/from_pytorch.py" "$programs/import" "$examples" ||
        fail "import: found other results than PyTorch's"
else
    echo "no NumPy: weights in PyTorch's layouts are not tested"
fi

# Everything global in the archive is public.
surplus=$(nm -g --defined-only "$library/libgraphi.a" | awk 'NF == 3 { print $3 }' | grep -v '^graphi_' || true)
[ -z "${GRAPHI_TEST_FLAGS:-}" ] && [ -n "$surplus" ] && fail "found global symbols $surplus, expected graphi_ ones only"

# An experiment about a described machine: its program and the description are found in the folder that was moved.
if [ -n "$benchmarks" ]; then
    "$prefix/bin/graphi" bench table-3 --quiet --json r.json >"$folder/log" 2>&1 && grep -q '"id":' r.json ||
        { cat "$folder/log"; fail "bench table-3: found no rows"; }
else
    echo "no benchmarks: the installed ones are not tested"
fi
"$prefix/bin/graphi" bench nothing 2>"$folder/log" && fail "bench nothing: found success, expected status 2"
tail -1 "$folder/log" | grep -q '^graphi: error: USAGE: bench: found ' || fail "bench nothing: found $(tail -1 "$folder/log")"
echo "installed, built against and used: shared, static, pkg-config, CMake"
