#!/usr/bin/env python3
"""The program behind scripts/demo: examples/cartpole.py on Tokamak and on XLA, in parallel."""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLATFORMS = {"tokamak": "Tokamak", "cpu": "XLA (CPU)"}
TOLERANCE = 1e-3  # for states after 100 steps: rounding differs, and a pole amplifies it


def run(platform, poles, steps):
    """The program's own report on one platform, by program. Its progress is shown as it runs."""
    command = [sys.executable, str(ROOT / "examples" / "cartpole.py"), "--json", "--poles", str(poles), "--steps", str(steps)]
    process = subprocess.Popen(command, env={**os.environ, "JAX_PLATFORMS": platform}, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    show = sys.stderr.isatty()
    said = []
    for line in process.stderr:
        said.append(line)
        text = f"  {PLATFORMS[platform]}: {line.strip().partition(': ')[2]}"
        print(f"\r{text:<79.79}" if show else text, end="" if show else "\n", file=sys.stderr, flush=True)
    results = [json.loads(line) for line in process.stdout if line.startswith("{")]
    if show:
        print("\r" + " " * 79 + "\r", end="", file=sys.stderr)
    if process.wait() != 0:
        sys.exit(f"examples/cartpole.py ended with {process.returncode} on {platform}:\n{''.join(said[-20:])}")
    return {result["program"]: result for result in results}


def difference(a, b):
    """The largest difference between two lists of states."""
    return max(abs(x - y) for row, other in zip(a, b) for x, y in zip(row, other))


def verdict(a, b):
    if a["state"] == b["state"] and a["falls"] == b["falls"]:
        return "equal, bit for bit"
    if a["falls"] != b["falls"]:
        return f"no: {a['falls']} and {b['falls']} falls"
    apart = difference(a["state"], b["state"])
    return f"yes, within {apart:.0e}" if apart <= TOLERANCE else f"no: {apart:.0e} apart"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--poles", type=int, default=256)
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    print(f"CartPole, {args.poles} poles, {args.steps} steps: examples/cartpole.py, which knows nothing of Tokamak\n", flush=True)
    reports = {platform: run(platform, args.poles, args.steps) for platform in PLATFORMS}

    print(f"{'program':<10}{'runs on':<12}{'first result':>14}{'a step':>14}   results equal?")
    same = True
    for program in reports["tokamak"]:
        ours, theirs = reports["tokamak"][program], reports["cpu"][program]
        says = verdict(ours, theirs)
        same &= not says.startswith("no")
        for report, platform, word in ((ours, "tokamak", ""), (theirs, "cpu", says)):
            first, step = f"{report['first_s']:.2f} s", f"{report['step_us']:.0f} us"
            print(f"{program:<10}{PLATFORMS[platform]:<12}{first:>14}{step:>14}   {word}".rstrip())
    sys.path.insert(0, str(ROOT / "python"))
    import tokamak

    backends = {device.get("kind", "?") for device in tokamak.devices()} or {"interp"}
    print(f"\nTokamak ran on: {', '.join(sorted(backends))}.")
    if "interp" in backends:
        print("That is its reference interpreter: right, and not fast. The compiling backends are not there yet.")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
