#!/usr/bin/env python3
"""Writes pages of docs/results from their data. Measures nothing.

    bench/write_pages.py               all pages
    bench/write_pages.py cpu model     some of them
    bench/write_pages.py --check       exit 1 if a page differs from its data (ctest name docs.results)

A page has a section per run; the data of a run is one file NAME.json beside the page, written by one command on one machine.
The commands that measure call `write` for their page. Pages of ELSEWHERE are written by their own commands.
"""
import argparse
import importlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs/results"
# page: the command that measures, and the data of its sections
PAGES = {
    "counters": ("bench/counters.py", ["counters"]),
    "cpu": ("bench/run_cpu.py", ["cpu", "cpu_x86_64_16"]),
    "cuda": ("bench/run_cuda.py", ["cuda", "cuda_models", "cuda_bert"]),
    "dispatch": ("bench/run_dispatch.py", ["dispatch"]),
    "foundation": ("bench/run_foundation.py", ["foundation"]),
    "fusion": ("bench/fusion_ladder.py", ["fusion", "fusion_times"]),
    "gpu": ("tests/gpu/run", ["gpu"]),
    "loops": ("tests/gpu/run loops", ["loops"]),
    "loops_cpu": ("bench/run_loops.py", ["loops_cpu", "loops_cpu_x86_64_2", "loops_cpu_x86_64_16"]),
    "memory": ("bench/run_memory.py", ["memory"]),
    "model": ("bench/model_error.py", ["model", "model_x86_64_16", "model_aarch64_2", "model_cuda"]),
    "never_slower": ("bench/never_slower.py", ["never_slower", "never_slower_cuda"]),
    "planning": ("bench/plan_times.py", ["planning"]),
    "products": ("bench/run_products.py", ["products"]),
    "schedules": ("bench/schedules.py", ["schedules", "schedules_cuda"]),
    "tensor_cores": ("bench/run_tensor_cores.py", ["tensor_cores"]),
    "train_cpu": ("bench/run_train.py", ["train_cpu"]),
}

# other pages: the command that writes them, and their titles
ELSEWHERE = {
    "paper": ("bench/paper", "Experiments of the paper, reproduced"),
    "rules": ("tools/rule_firings.py", "Firings of the algebraic rules"),
}


def has_data(page):
    return any((RESULTS / f"{name}.json").is_file() for name in PAGES[page][1])


def index():
    """README.md: all pages that have data, and what measures them."""
    rows = {page: (measured_by, importlib.import_module(f"result_pages.{page}").TITLE)
            for page, (measured_by, _) in PAGES.items() if has_data(page)} | ELSEWHERE  # fmt: skip
    lines = ["`bench/write_pages.py` writes this page.", "", "# Results", "", "| page | measured by |", "|---|---|"]
    return "\n".join(lines + [f"| [{title}]({page}.md) | `{measured_by}` |" for page, (measured_by, title) in sorted(rows.items())]) + "\n"


def text(page, folder=RESULTS, more=()):
    """The text of a page, from the data files that the folder has; `more`: others than those of PAGES."""
    measured_by, names = PAGES[page]
    module = importlib.import_module(f"result_pages.{page}")
    names = [name for name in dict.fromkeys([*names, *more]) if (folder / f"{name}.json").is_file()]
    files = ", ".join(f"{name}.json" for name in names)
    lines = [f"`bench/write_pages.py {page}` writes this page from {files}, which `{measured_by}` measures.", "", f"# {module.TITLE}", "", module.INTRO]
    for name in names:
        lines += ["", *module.section(json.loads((folder / f"{name}.json").read_text()))]
    return "\n".join(lines) + "\n"


def write(page, folder=RESULTS, *more):
    """Writes a page; returns its text."""
    made = text(page, Path(folder), more)
    (Path(folder) / f"{page}.md").write_text(made)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", default=list(filter(has_data, PAGES)), metavar="PAGE", help=", ".join(PAGES))
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if not arguments.check:
        for page in arguments.pages:
            write(page)
        (RESULTS / "README.md").write_text(index())
        return 0
    wanted = {page: text(page) for page in arguments.pages} | {"README": index()}
    differ = [page for page, made in wanted.items() if (RESULTS / f"{page}.md").read_text() != made]
    unknown = sorted({path.stem for path in RESULTS.glob("*.md")} - wanted.keys() - PAGES.keys() - ELSEWHERE.keys())
    known = {name for _, names in PAGES.values() for name in names} | {"paper", "paper_cpu"}
    unknown += sorted(path.name for path in RESULTS.glob("*.json") if path.stem not in known)
    for page in differ:
        print(f"docs/results/{page}.md differs from its data: run bench/write_pages.py")
    for name in unknown:
        print(f"docs/results/{name} belongs to no page of bench/write_pages.py")
    print(f"results: {len(arguments.pages)} pages, {len(differ) + len(unknown)} errors")
    return 1 if differ or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
