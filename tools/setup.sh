#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that a step needs and that are missing, saying which. Usage: tools/setup.sh build|demo|test|long|bench
set -eu
packages="build-essential cmake ninja-build pkg-config libhwloc-dev libjansson-dev nettle-dev zlib1g-dev libprotobuf-c-dev protobuf-c-compiler libcmocka-dev"
case "${1:-build}" in
build) ;;
demo) packages="$packages dataset-fashion-mnist" ;;
test) packages="$packages dataset-fashion-mnist python3 python3-dev python3-venv python3-sklearn locales" ;;
long) packages="$packages dataset-fashion-mnist python3 python3-dev python3-venv python3-sklearn locales man-db chromium qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross valgrind libonnx-testdata libopenmpi-dev openmpi-bin" ;;
bench) packages="$packages dataset-fashion-mnist python3 python3-venv libtbb-dev libstarpu-dev libdnnl-dev libopenblas-dev libxsmm-dev" ;;
*) echo "setup: found '$1', expected build, demo, test, long or bench" >&2; exit 2 ;;
esac
missing=
for package in $packages; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
echo "setup: installing$missing"
sudo=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "setup: not root and no sudo; please install:$missing" >&2; exit 1; }
    sudo=sudo
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 1' INT TERM
apt="$sudo env DEBIAN_FRONTEND=noninteractive apt-get" # sudo clears the environment
if ! { $apt update && $apt install -y --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -20 "$log" >&2
    echo "setup: could not install$missing" >&2
    exit 1
fi
