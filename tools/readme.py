#!/usr/bin/env python3
"""Writes the table of README.md against XLA from the data in docs/results, between the marks <!-- results --> and <!-- end -->.

    tools/readme.py            writes it
    tools/readme.py --check    fails where the page and the data differ (ctest name check.readme)
"""
import json
import math
import statistics
import sys

import tree

BEGIN, END = "<!-- results -->", "<!-- end -->"
# title, data file, page of results, machine. How each file holds its rows: see ROWS.
TABLE = (("elementwise, reductions, softmax, attention, sorts", "cpu", "cpu", "2 CPU cores"),
         ("programs of the same kinds", "cpu_x86_64_16", "cpu", "16 CPU cores"),
         ("loops: simulation, recurrent cells, solvers", "loops_cpu", "loops_cpu", "2 CPU cores (aarch64)"),
         ("the same", "loops_cpu_x86_64_16", "loops_cpu", "16 CPU cores"),
         ("training steps: CNN, ResNet, transformer", "train_cpu", "train_cpu", "2 CPU cores"),
         ("elementwise, reductions, softmax, sorts, stencils", "cuda", "cuda", "H200"),
         ("randomly generated loops", "loops", "loops", "H200"),
         ("products, attention, convolutions, BERT, GPT and ResNet training", "tensor_cores", "tensor_cores", "H200"))  # fmt: skip


def of_programs(data):
    for row in data["programs"]:
        if "seconds" in row:
            ours, theirs = (statistics.median(row["seconds"][side]) for side in ("tokamak", "cpu"))
            yield f"{row['workload']} {row['size']}", theirs / ours


def of_loops(data):
    for group in ("bars", "plain"):
        for name, row in data[group].items():
            yield name.replace(":", " "), row["seconds"]["cpu"] / row["seconds"]["tokamak"]


def of_training(data):
    for row in data["rows"]:
        yield row["program"], row["ratio"]


def of_gpu(data):
    for row in data["rows"]:
        yield f"{row['name']} {row['size']}", row["ratio"]


def of_labels(data):
    for row in data["rows"]:
        if row.get("peer_ms"):
            yield row["label"].partition("/")[2].rstrip(":").replace(":", " "), row["peer_ms"] / row["ms"]


def of_seeds(data):
    for row in data["rows"]:
        yield f"seed {row['seed']}", row["ratio"]


ROWS = {"cpu": of_programs, "cpu_x86_64_16": of_programs, "loops_cpu": of_loops, "loops_cpu_x86_64_16": of_loops,
        "train_cpu": of_training, "cuda": of_gpu, "loops": of_seeds, "tensor_cores": of_labels}


def lines(root):
    yield "| programs | machine | number of programs | XLA's time / Tokamak's, geometric mean (least to greatest) | slower than XLA by more than 5 % |"
    yield "|---|---|---|---|---|"
    for title, data, page, machine in TABLE:
        rows = list(ROWS[data](json.loads((root / f"docs/results/{data}.json").read_text())))
        ratios = [ratio for _, ratio in rows]
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        slower = ", ".join(f"{name} ({ratio:.2f})" for name, ratio in sorted(rows, key=lambda row: row[1]) if ratio < 0.95)
        yield (f"| [{title}](docs/results/{page}.md) | {machine} | {len(rows)} | **{mean:.2f}** ({min(ratios):.2f} to {max(ratios):.2f}) "
               f"| {slower or 'none'} |")  # fmt: skip


def main():
    args = tree.arguments(__doc__.split("\n")[0], check="fail where the page and the data differ, and write nothing")
    page = args.root / "README.md"
    text = page.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    made = f"{before}{BEGIN}\n" + "\n".join(lines(args.root)) + f"\n{END}{after}"
    if args.check:
        return tree.report("readme", 1, [] if made == text else ["README.md: its table is not what docs/results has; run tools/readme.py"])
    page.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
