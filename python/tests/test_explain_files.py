"""Files that tokamak.explain() and TOKAMAK_EXPLAIN write: traces, comparisons of plans, and the pages of all programs of a run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import tokamak

X = jnp.ones((8, 64))
PROGRAMS = """
import jax, numpy as np, threading
def double(x): return x + x
def rows(x): return jax.nn.softmax(x)
def sums(x): return x.sum(1)
x = np.ones((8, 16), np.float32)
threads = [threading.Thread(target=lambda f=f: jax.jit(f)(x).block_until_ready()) for f in (double, rows, sums)]
for one in threads: one.start()
for one in threads: one.join()
"""
FAILING = """
import jax, numpy as np
try:
    jax.jit(lambda x: x * 2, compiler_options={"tokamak_require_fused": "no_such_name"})(np.ones(4, np.float32))
except Exception as error:
    print(error)
"""


def softmax(x):
    return jax.nn.softmax(x)


def data_of(page):
    return json.loads(re.search(r'<script id="report" type="application/json">(.*?)</script>', page, re.DOTALL).group(1))


def started(folder, code=PROGRAMS):
    environment = {**os.environ, "TOKAMAK_EXPLAIN": str(folder), "JAX_PLATFORMS": "tokamak", "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process):
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return out


def rows_of(folder):
    return data_of((Path(folder) / "index.html").read_text())["programs"]


def test_traces(tmp_path):
    explanation = tokamak.explain(softmax, X)
    trace = json.loads(explanation.trace())
    steps = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["pid"] == 1]
    assert [step["name"] for step in steps] == [kernel["name"] for kernel in explanation.data["kernels"]]
    assert explanation.trace(tmp_path / "trace.json") is None
    written = json.loads((tmp_path / "trace.json").read_text())
    assert [event["name"] for event in written["traceEvents"] if event["pid"] == 1] == [event["name"] for event in trace["traceEvents"] if event["pid"] == 1]


def test_two_plans_of_one_function(tmp_path):
    fused, unfused = (tokamak.explain(softmax, X, tokamak_options={"tokamak_fusion": mode}) for mode in ("search", "none"))
    diff = unfused.diff(fused)
    assert "only in tokamak_fusion=none:" in str(diff)
    assert diff.data["a"]["totals"]["steps"] == len(unfused.data["kernels"])
    diff.html(tmp_path / "diff.html")
    page = data_of((tmp_path / "diff.html").read_text())
    assert (page["a"]["name"], page["b"]["name"]) == ("tokamak_fusion=none", "tokamak_fusion=search")
    assert [kernel["name"] for kernel in page["b"]["report"]["kernels"]] == [kernel["name"] for kernel in fused.data["kernels"]]
    assert diff._repr_html_().startswith("<iframe")
    same = fused.diff(fused)
    assert same.data["a"]["only"] == same.data["b"]["only"] == [] and "softmax (1)" in str(same)


def test_two_functions():
    diff = tokamak.explain(softmax, X).diff(tokamak.explain(jnp.tanh, X))
    assert diff.data["in_both"] == 0 and diff.data["a"]["name"] == "softmax"
    with pytest.raises(TypeError, match="diff takes the result of tokamak.explain, not int"):
        tokamak.explain(softmax, X).diff(3)
    both = tokamak.explain(softmax, X, tokamak_target="host,h200")
    with pytest.raises(tokamak.ExplainError, match="one target"):
        str(tokamak.explain(softmax, X).diff(both))


def test_every_program_of_a_run_has_a_page(tmp_path):
    folder = tmp_path / "a" / "b"
    for process in [started(folder), started(folder)]:  # at the same time, three threads each
        ended(process)
    rows = rows_of(folder)
    assert sorted(row["name"] for row in rows) == sorted(["jit_double", "jit_rows", "jit_sums"] * 2)
    assert len({row["process"] for row in rows}) == 2
    for row in rows:
        page = data_of((folder / f"{row['files']}.html").read_text())
        assert row["has_page"] and row["kernels"] == page["fused"]["kernels"] and row["predicted_us"] == page["fused"]["predicted_us"]
        assert row["compile_ms"] > 0 and row["temporary_bytes"] == page["temporary_bytes"]
        assert (folder / f"{row['files']}.before_optimizations.txt").stat().st_size > 0
        assert (folder / f"{row['files']}.after_optimizations.txt").stat().st_size > 0
    assert not list(folder.glob("*.part*"))
    # A later run adds its programs. Rows that are no JSON are left out.
    (folder / "module_9999.broken.explain.json").write_text('{"name": "bro')
    (folder / "module_9998.list.explain.json").write_text("[1, 2]")
    ended(started(folder))
    assert len(rows_of(folder)) == 9


def test_programs_that_do_not_compile_are_listed(tmp_path):
    assert "no_such_name" in ended(started(tmp_path, FAILING))
    (row,) = rows_of(tmp_path)
    assert row["error"].startswith("TK") and "no_such_name" in row["error"] and "has_page" not in row


def test_folders_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    ended(started(tmp_path / "file"))  # a file, not a folder
    (tmp_path / "folder" / "index.html").mkdir(parents=True)  # the index cannot be renamed to this name
    ended(started(tmp_path / "folder"))
    assert len(list((tmp_path / "folder").glob("*.explain.json"))) == 3
