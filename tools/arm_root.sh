#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpacks what the cross build for 64-bit ARM links with (cmake/aarch64.cmake) into build/arm-root: Debian's packages of that
# architecture, fetched with lists of their own, so that the machine's set of packages stays as it is.
set -eu
cd "$(dirname "$0")/.."
packages="libhwloc-dev libhwloc15 libudev1 libcap2 libjansson-dev libjansson4 nettle-dev libnettle8 libhogweed6 libgmp10 zlib1g-dev zlib1g libprotobuf-c-dev libprotobuf-c1
          libcmocka-dev libcmocka0"
root=$PWD/build/arm-root
[ -f "$root/whole" ] && exit 0
rm -rf "$root"
mkdir -p "$root/apt/lists/partial" "$root/apt/cache/archives/partial" "$root/debs"
apt() {
    apt-get -qq -o APT::Architectures::=amd64 -o APT::Architectures::=arm64 -o APT::Sandbox::User= -o Dir::State="$root/apt" \
        -o Dir::State::status=/var/lib/dpkg/status -o Dir::Cache="$root/apt/cache" "$@"
}
apt update
# shellcheck disable=SC2086
(cd "$root/debs" && apt download $(printf '%s:arm64 ' $packages)) || { echo "arm_root: found not all of $packages for arm64" >&2; exit 1; }
for package in "$root"/debs/*.deb; do
    dpkg-deb -x "$package" "$root"
done
rm -rf "$root/apt" "$root/debs"
touch "$root/whole"
