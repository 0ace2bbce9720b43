#!/usr/bin/env python3
"""libtokamak.so exports GetPjrtApi and the tok_* of <tokamak/c_api.h>, nothing else.

    exports_test.py build/lib/libtokamak.so
"""
import pathlib
import re
import subprocess
import sys

HEADER = pathlib.Path(__file__).resolve().parents[2] / "include/tokamak/c_api.h"


def main():
    listed = subprocess.run(["nm", "-D", "--defined-only", sys.argv[1]], check=True, capture_output=True, text=True)
    exported = {line.split()[-1].split("@")[0] for line in listed.stdout.splitlines() if line.split()[-2] != "A"}
    declared = set(re.findall(r"^TOK_API [^;]*?\b(tok_\w+)\(", HEADER.read_text(), re.M)) | {"GetPjrtApi"}
    for name in sorted(exported ^ declared):
        print(f"{name}: {'exported but not declared' if name in exported else 'declared but not exported'}")
    print(f"{len(exported)} symbols")
    return int(exported != declared)


if __name__ == "__main__":
    sys.exit(main())
