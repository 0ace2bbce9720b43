#!/usr/bin/env python3
"""same_bits.py TOKAMAK BACKEND [EVERY]: two processes run the same programs in opposite orders, one of them after other work
and with a disk cache, and must have the same bits. Programs: those of the JAX corpus and of tests/gpu/kernels."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
TOKAMAK, BACKEND = sys.argv[1:3]
EVERY = int(sys.argv[3]) if len(sys.argv) > 3 else 1


def programs():
    """{program: its inputs, "" if they are random}."""
    corpus = Path(os.environ.get("TOKAMAK_CORPUS") or os.devnull) / "jax/dev"
    folders = [corpus] if corpus.is_dir() else sorted((ROOT / "build/corpus").glob("jax-*/dev"))
    found = {p / "hlo.txt": p / "io.npz" for folder in folders for p in sorted(folder.iterdir()) if (p / "hlo.txt").exists()}
    found |= {p: "" for p in sorted((ROOT / "tests/gpu/kernels/programs").glob("*.hlo")) if "LARGE:" not in p.read_text()}
    return dict(list(found.items())[::EVERY])


def begin(entries, folder, name, cache):
    listed = folder / f"{name}.json"
    listed.write_text(json.dumps(entries))
    command = [TOKAMAK, "run", "--batch", str(listed), "--json", "--hoist", "--seed", "7", "--backend", BACKEND]
    return subprocess.Popen(command, stdout=(folder / f"{name}.out").open("w"), stderr=subprocess.STDOUT,
                            env={**os.environ, "TOKAMAK_CACHE": cache})  # fmt: skip


def arrays(path):
    try:
        with np.load(path) as held:
            return {name: held[name].tobytes() for name in held.files}
    except OSError:
        return None


def main():
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        found = programs()
        entries = {"a": [], "b": []}
        for number, (program, inputs) in enumerate(found.items()):
            for name in entries:
                given = {"inputs": str(inputs)} if inputs else {}
                entries[name].append({"file": str(program), "outputs": str(folder / f"{name}{number}.npz"), **given})
        # The second process: other work first, then everything in reverse order.
        other = [{**entry, "outputs": str(folder / "other.npz")} for entry in entries["b"][::3]]
        running = [begin(entries["a"], folder, "a", "off"), begin(other + entries["b"][::-1], folder, "b", str(folder / "cache"))]
        for process in running:
            process.wait()
        same = different = none = 0
        for number, program in enumerate(found):
            first, second = arrays(folder / f"a{number}.npz"), arrays(folder / f"b{number}.npz")
            if first is None or second is None:
                none += 1
                print(f"no result: {program}")
            elif first == second:
                same += 1
            else:
                different += 1
                print(f"FAILED {program}: {[name for name in first if first[name] != second.get(name)]} differ")
        if none:
            print((folder / "a.out").read_text()[-1500:])
    print(f"figure: {same} of {same + different + none} programs the same bits in two processes")
    print(f"tally: {same} passed, {different + none} failed, 0 skipped")
    return 1 if different or none or not same else 0


sys.exit(main())
