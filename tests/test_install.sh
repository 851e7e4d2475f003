#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs into a temporary folder and uses what is there as a user would: a program built through pkg-config and
# through the CMake package, shared and static, outside the tree; the command, its man page, completion and benchmarks.
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

for file in bin/graphi share/man/man1/graphi.1 share/bash-completion/completions/graphi include/graphi/graphi.h \
    share/graphi/machines/synthetic-1024.json libexec/graphi/sweep \
    libexec/graphi/frameworks-peers/regression_sklearn.py; do
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

# Everything global in the archive is public.
surplus=$(nm -g --defined-only "$library/libgraphi.a" | awk 'NF == 3 { print $3 }' | grep -v '^graphi_' || true)
[ -z "${GRAPHI_TEST_FLAGS:-}" ] && [ -n "$surplus" ] && fail "found global symbols $surplus, expected graphi_ ones only"

"$prefix/bin/graphi" bench nothing 2>"$folder/log" && fail "bench nothing: found success, expected status 4"
tail -1 "$folder/log" | grep -q '^graphi: error: UNSUPPORTED: bench: found ' || fail "bench nothing: found $(tail -1 "$folder/log")"
echo "installed, built against and used: shared, static, pkg-config, CMake"
