#!/usr/bin/env python3
"""Large programs: ladders, long chains, thousands of parameters and operands, calls that expand to 2^40. Each
program runs through the default pipeline within a time that only a quadratic pass exceeds. The last line is a tally.

    tests/passes_large.py TOKAMAK
"""
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MAKE = Path(__file__).resolve().parent.parent / "bench/make_large.py"
# Kind, count, seconds (a hundred times what an idle machine needs), and how many instructions may be left.
CASES = [("chain", 10000, 10), ("chain", 100000, 30), ("ladder", 10000, 10), ("parameters", 5000, 10),
         ("concatenate", 1000, 10), ("concatenate", 20000, 20), ("mixed", 10000, 10), ("mixed", 100000, 40),
         ("sums", 10000, 10), ("nested", 10000, 10), ("pieces", 1000, 10), ("hub", 10000, 10), ("updates", 10000, 10),
         ("calls", 40, 30), ("calls", 5000, 40), ("steps", 4, 10, 150), ("steps", 1000, 20, 150)]  # fmt: skip


def main():
    failed = 0
    for kind, count, seconds, *most in CASES:
        with tempfile.NamedTemporaryFile("w", suffix=".hlo") as file:
            file.write(subprocess.run([sys.executable, str(MAKE), kind, str(count)], capture_output=True, text=True, check=True).stdout)
            file.flush()
            begin = time.time()
            try:
                done = subprocess.run([sys.argv[1], "opt", file.name, "--time-passes"], capture_output=True, text=True,
                                      timeout=seconds, check=False)  # fmt: skip
                error = "" if done.returncode == 0 else done.stderr[:300]
            except subprocess.TimeoutExpired:
                error = f"took longer than {seconds} s"
            if not error and most and int(done.stdout.splitlines()[-1].split()[2]) > most[0]:
                error = f"{done.stdout.splitlines()[-1].split()[2]} instructions left, {most[0]} expected"
            if error:
                failed += 1
                print(f"FAILED {kind} {count}: {error}")
            else:
                total = done.stdout.splitlines()[-1].split()
                print(f"{kind} {count}: {total[1]} -> {total[2]} instructions, {total[-1]} ms ({time.time() - begin:.2f} s in all)")
    print(f"tally: {len(CASES) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
