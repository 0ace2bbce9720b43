#!/usr/bin/env python3
"""Tests `tokamak explain --xla-dump` on new dumps of XLA's CPU compiler for CartPole and a layer of BERT (dumps/make.py), and
on fused programs of the corpora, including those for GPUs and TPUs.

    dumps_test.py build/bin/tokamak [FOLDER of unpacked corpora]"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FUSED = re.compile(r"kind=k(Loop|Input|Output|Custom)")


def explain(tokamak, path):
    done = subprocess.run([tokamak, "explain", "--xla-dump", "--json", str(path)], capture_output=True, text=True, timeout=120)
    report = json.loads(done.stdout.splitlines()[0]) if done.returncode == 0 and done.stdout else None
    return done, report


def problems(path, done, report):
    """The errors in the report about a dump."""
    if report is None:
        return [f"exit {done.returncode}: {done.stderr[:300]}"]
    given, wrong = report["given"], []
    names = {kernel["name"] for kernel in given["kernels"]}
    if given["fusions"] > len(given["kernels"]):
        wrong.append("more fusions than kernels")
    if given["fusions"] == 0 and re.search(r"^ENTRY(.|\n)*?kind=k", path.read_text(), re.M):
        wrong.append("its fusions were not seen")
    for boundary in given["boundaries"]:
        if not boundary["cause"] or boundary["from"] not in names:
            wrong.append(f"a boundary without a cause or a kernel: {boundary}")
    if "interpreted" not in report["tokamak"] and report["tokamak"]["total"] == 0 and given["kernels"]:
        wrong.append("Tokamak makes nothing of it")
    return wrong


def page_of(tokamak, path, folder):
    """The errors in the page about a dump, which also compiles XLA's division into kernels."""
    page = Path(folder) / "dump.html"
    done = subprocess.run([tokamak, "explain", "--xla-dump", "--html", str(page), str(path)], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        return [f"--html: exit {done.returncode}: {done.stderr[:300]}"]
    data = json.loads(re.search(r'<script id="report" type="application/json">(.*?)</script>', page.read_text(), re.DOTALL).group(1))
    if not isinstance(data["xla_steps"], list):
        return [f"XLA's kernels are no plan: {data['xla_steps']}"]
    numbers = range(len(data["given"]["kernels"]))
    if any(kernel not in numbers for step in [*data["tokamak"]["kernels"], *data["xla_steps"]] for kernel, _ in step["given"]):
        return ["a step of a kernel that the dump does not have"]
    return []


def report_of(tokamak, path):
    """The errors in the rest of the report about the program of a dump."""
    wrong = []
    for words, keys in ((("explain", "--json"), ("fused", "unfused", "phases", "lints", "break_even")), (("lint", "--json"), ("lints",)),
                        (("explain", "--json", "--target", "host,h200"), ("break_even_without_transfers",)), (("explain", "--dot", "--json"), ("dot",)),
                        (("explain", "--json", "--diff", "none", "search"), ("in_both",))):
        done = subprocess.run([tokamak, *words, str(path)], capture_output=True, text=True, timeout=120)
        if done.returncode != 0 or any(key not in json.loads(done.stdout) for key in keys):
            wrong.append(f"{' '.join(words)}: exit {done.returncode}: {done.stderr[:300]}")
    return wrong


def fresh(folder):
    """New dumps; none without JAX."""
    made = subprocess.run([sys.executable, str(HERE / "dumps/make.py"), folder], capture_output=True, text=True)
    if made.returncode != 0 and "No module named 'jax'" in made.stderr:
        print("note: no JAX here, so no new dumps")
        return []
    return sorted(Path(folder).glob("*.txt")) or [Path("dumps/make.py made nothing: " + made.stderr[-300:])]


def main(tokamak, corpora):
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        paths = sorted((HERE / "dumps").glob("*.txt")) + fresh(folder)
        fused = (path for path in sorted(Path(corpora).rglob("*.hlo")) if FUSED.search(path.read_text(errors="replace")))
        for path in [*paths, *fused]:
            done, report = explain(tokamak, path)
            if report is None and done.returncode in (2, 3) and path.suffix == ".hlo":
                continue  # rejected for reasons other than its fusions
            wrong = problems(path, done, report)
            if report is not None and "interpreted" not in report["tokamak"]:
                wrong += page_of(tokamak, path, folder)
            if path.parent.name == "dumps":
                wrong += report_of(tokamak, path)
            passed, failed = passed + (not wrong), failed + bool(wrong)
            for what in wrong:
                print(f"FAILED {path}: {what}")
    print(f"tally: {passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else HERE.parents[1] / "build/corpus"))
