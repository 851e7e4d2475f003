#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the package into a folder from the static library that is there, without CMake: what the tests import.
# usage: python/build.sh BUILD PYTHON OUT    BUILD has libgraphi.a and generate_ops, PYTHON has cffi; OUT/graphi is written
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$1 python=$2 out=$3
mkdir -p "$out/graphi"
for file in "$here"/graphi/*; do
    [ -d "$file" ] || cp -p "$file" "$out/graphi/"
done
"$build/generate_ops" json >"$out/operations.json"
"$python" "$here/generate_operations.py" "$out/operations.json" "$out/graphi/operations.py"
"$python" "$here/generate_native.py" --include "$here/../include" --out "$out/native.c" --cc "${CC:-cc}" >/dev/null
headers=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
libraries=$(pkg-config --libs hwloc jansson nettle zlib libprotobuf-c)
# The workers are threads that outlive dlclose(). Symbols of the library stay inside.
${CC:-cc} -shared -fPIC -O1 -w -DPy_LIMITED_API=0x03090000 -I"$headers" -I"$here/../include" "$out/native.c" "$build/libgraphi.a" \
    ${LDFLAGS:-} -Wl,--exclude-libs,ALL -Wl,-z,nodelete $libraries -pthread -lm -ldl -o "$out/graphi/_native.abi3.so"
