#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What setting up and installing do to the system, played with commands that only note what was asked of them: packages
# are installed without questions, also under sudo, which clears the environment; root's installation is made known to
# programs, any other says what is left to do.
# usage: test_system.sh SOURCE
set -eu
source=$1
folder=$(mktemp -d "${TMPDIR:-/tmp}/graphi-system.XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
fail() { echo "test_system: $*" >&2; exit 1; }

mkdir "$folder/bin" "$folder/tmp"
command_is() { { echo '#!/bin/sh'; cat; } >"$folder/bin/$1"; chmod +x "$folder/bin/$1"; }
TMPDIR=$folder/tmp
PATH=$folder/bin:$PATH
export folder TMPDIR PATH
unset DEBIAN_FRONTEND DESTDIR MAKEFLAGS
command_is dpkg-query <<'END'
exit 1
END
command_is id <<'END'
echo "${user:-1000}"
END
command_is sudo <<'END'
exec env -i PATH="$PATH" folder="$folder" "$@"
END
command_is apt-get <<'END'
echo "$1 ${DEBIAN_FRONTEND:-asks}" >>"$folder/apt"
[ ! -e "$folder/refused" ]
END
command_is cmake <<'END'
END
command_is ldconfig <<'END'
[ "${1:-}" = -p ] || echo known >>"$folder/known"
[ ! -e "$folder/known" ] || echo "	libgraphi.so (libc6,x86-64) => /played/lib/libgraphi.so"
END

for user in 0 1000; do
    export user
    rm -f "$folder/apt"
    "$source/tools/setup.sh" build >/dev/null || fail "setup.sh as user $user: found status $?"
    [ "$(cat "$folder/apt")" = "update noninteractive
install noninteractive" ] || fail "setup.sh as user $user: found $(cat "$folder/apt")"
done
touch "$folder/refused"
"$source/tools/setup.sh" build >/dev/null 2>&1 && fail "setup.sh: found success where nothing could be installed"
[ -z "$(ls "$folder/tmp")" ] || fail "setup.sh: found $(ls "$folder/tmp") left behind"

# Who installs, with what more, what is told, whether the library was made known.
installs() {
    rm -f "$folder/known"
    user=$1 make -s -C "$source" -o build install PREFIX=/played $2 >"$folder/log" 2>&1 ||
        fail "make install: $(cat "$folder/log")"
    grep -q LD_LIBRARY_PATH "$folder/log" && told=told || told=
    [ -e "$folder/known" ] && known=known || known=
    [ "$told$known" = "$3" ] || fail "make install as user $1 $2: found '$told$known', expected $3"
}
installs 0 "" known
installs 0 DESTDIR=/staged told
installs 1000 "" told
echo "played: setup and installation as root and as a user"
