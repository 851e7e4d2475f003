# SPDX-License-Identifier: Apache-2.0
"""`python -m graphi` is the command: the one of this package, or the first that is found on the path."""
import os
import shutil
import sys
from pathlib import Path


def main() -> int:
    bundled = Path(__file__).parent / "bin" / "graphi"
    command = str(bundled) if bundled.exists() else shutil.which("graphi")
    if command is None:
        print("graphi: found no command in the package or on the path, expected one: make install", file=sys.stderr)
        return 5
    os.execv(command, ["graphi", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
