#!/usr/bin/env python3
"""Creates the seeds of the fuzzers from the corpora, our own tests (small programs, split at "// -----") and ops.def.

    fuzz_seeds.py OUT        OUT/mlir, OUT/hlo and OUT/bytecode, created once per content of the corpora

Without the corpora the seeds are those of tests/ alone.
"""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LARGEST = 3000
MOST = 600  # files per format


def archives():
    corpora = Path(os.environ.get("TOKAMAK_CORPUS") or os.devnull)
    return sorted(corpora.glob("*.tar.zst"))


def corpus_files(folder):
    """(format, bytes) of every program of the corpora."""
    for archive in archives():
        location_path = Path(folder) / archive.name
        location_path.mkdir()
        subprocess.run(["tar", "--zstd", "-xf", str(archive), "-C", str(location_path)], check=True)
        yield from programs_below(location_path)


def programs_below(folder):
    for path in sorted(Path(folder).rglob("*")):
        if path.suffix in (".bc", ".mlirbc"):
            yield "bytecode", path.read_bytes()
        elif path.suffix == ".mlir":
            for piece in path.read_bytes().split(b"// -----"):
                yield "mlir", piece
        elif path.suffix == ".hlo" or path.name == "hlo.txt":
            yield "hlo", path.read_bytes()


def programs_of_ops():
    """A program for each op that takes one or two arrays and no attributes: for reals and for integers."""
    table = (ROOT / "src/ir/ops.def").read_text()
    for name, arity in re.findall(r'^TOK_OP\(\w+,\s*"([^"]+)",.*?,\s*([12]),.*kElementwise\b.*NoAttrs', table, re.M):
        for shape in ("f32[7]", "s64[7]", "u8[7]"):
            arguments = ["x", "y"][: int(arity)]
            lines = [f"  {a} = {shape} parameter({i})" for i, a in enumerate(arguments)]
            lines.append(f"  ROOT r = {shape} {name}({', '.join(arguments)})")
            yield "hlo", ("HloModule m\n\nENTRY e {\n" + "\n".join(lines) + "\n}\n").encode()


def without_comments(data):
    return b"\n".join(line for line in data.split(b"\n") if not line.strip().startswith(b"//")).strip() + b"\n"


def main():
    out = Path(sys.argv[1])
    # New or changed corpora give new seeds.
    key = "".join(f"{archive.name} {archive.stat().st_size}\n" for archive in archives())
    if (out / "done").exists() and (out / "done").read_text() == key:
        return
    shutil.rmtree(out, ignore_errors=True)
    seeds = {"mlir": {}, "hlo": {}, "bytecode": {}}
    with tempfile.TemporaryDirectory() as folder:
        for source in (corpus_files(folder), programs_below(ROOT / "tests")):
            for kind, data in source:
                if kind != "bytecode":
                    data = without_comments(data)
                if 1 < len(data) <= (LARGEST if kind != "bytecode" else 2 * LARGEST):
                    seeds[kind][hashlib.sha1(data).hexdigest()] = data
    for kind, files in seeds.items():
        (out / kind).mkdir(parents=True, exist_ok=True)
        for name, data in sorted(files.items())[:MOST]:  # sorted by hash: an even sample
            (out / kind / name).write_bytes(data)
    for kind, data in programs_of_ops():
        (out / kind / hashlib.sha1(data).hexdigest()).write_bytes(data)
    (out / "done").write_text(key)


if __name__ == "__main__":
    main()
