#!/usr/bin/env python3
"""Every planted bug (tests/fuzz/planted, tests/random/planted) still applies to the sources: one that does not is found by nobody."""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main():
    patches = sorted(ROOT.glob("tests/*/planted/*.patch"))
    stale = [p for p in patches if subprocess.run(["git", "apply", "--check", str(p)], cwd=ROOT, capture_output=True, check=False).returncode]
    for patch in stale:
        print(f"{patch.relative_to(ROOT)}: does not apply any more; make it anew from the sources of today")
    print(f"planted: {len(patches)} bugs, {len(stale)} errors, 0 warnings")
    return 1 if stale or not patches else 0


if __name__ == "__main__":
    sys.exit(main())
