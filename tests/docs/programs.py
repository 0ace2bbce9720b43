"""Runs the programs of pages: Python, C++, text tests and kernels."""
import json
import re
import subprocess
import sys
from pathlib import Path

from docs.commands import ROOT

# Sources that C++ of a page may be a part of.
SOURCES = ("src/**/*.cc", "src/**/*.h", "examples/cpp/*.cc", "include/tokamak/*.h")
# What C++ of a page that is no whole program needs around it.
SURROUNDINGS = {
    "docs/adding_a_pass.md": '#include "rewrite/pass.h"\nnamespace tokamak {\nChanged FoldOne(Instr*, PassContext&);\n%s\n}',
}


def run_python(reader, blocks):
    """(error or None, lines printed) of each (page, code)."""
    asked = json.dumps([{"page": page, "code": code} for page, code in blocks])
    done = subprocess.run([sys.executable, Path(__file__).parent / "run_python.py"], input=asked, capture_output=True, text=True, timeout=300,
                          cwd=reader.folder, env={**reader.env, "JAX_PLATFORMS": "tokamak"}, check=False)  # fmt: skip
    if done.returncode != 0:
        return [(done.stderr, [])] * len(blocks)
    return [(result["error"], result["output"]) for result in json.loads(done.stdout)]


def words_only(text):
    return re.sub(r"\s+", " ", text).strip()


def is_in_sources(code):
    code = words_only(code)
    return any(code in words_only(path.read_text()) for pattern in SOURCES for path in ROOT.glob(pattern))


def run_cpp(reader, page, block):
    """(error or None, lines printed): code that is part of the sources is right; other code must compile, and run if it has a main."""
    code = "\n".join(block.lines)
    if is_in_sources(code):
        return None, []
    file, program = reader.folder / f"block_{block.line}.cc", reader.folder / f"block_{block.line}"
    file.write_text(SURROUNDINGS[page] % code if page in SURROUNDINGS else code)
    whole = re.search(r"\bint main\(", code)
    how = f"-o {program} -L build/lib -ltokamak -Wl,-rpath,{reader.build}/lib && {program}" if whole else "-fsyntax-only -I src"
    status, lines = reader.run(f"c++ -std=c++20 -I include {file} {how}")
    return (None, lines) if status == 0 else ("it is not part of the sources, and does not compile and run:\n" + "\n".join(lines), [])


def run_text_test(reader, block):
    return test_by(reader, block, "tok_text_tests", ".hlo", "")


def run_kernel(reader, block):
    return test_by(reader, block, "tok_kernel_tests", ".kernel", "// RUN: verify\n")


def test_by(reader, block, runner, suffix, head):
    """Writes a block to a file, below the head, and has a runner of text tests test it."""
    file = reader.folder / f"block_{block.line}{suffix}"
    file.write_text(head + "\n".join(block.lines) + "\n")
    status, lines = reader.run(f"{runner} {file}")
    return None if status == 0 else f"{runner} rejects it:\n" + "\n".join(lines), []
