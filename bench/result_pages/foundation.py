"""docs/results/foundation.md: the readers, the verifier and the interpreter (bench/run_foundation.py)."""
import statistics

from .common import facts_line, machine, table

CONSTANT_MB = 256
ELEMENTS = 1 << 20
TITLE = "Speed and memory of the readers, the verifier and the interpreter"
INTRO = """CPU time of a process on one core: the best of several repetitions over all cases, and the median.
Memory is the growth of the peak while the program is read; for text, the bytes of the file are added."""


def verdict(fine):
    return "yes" if fine else "**no**"


def noise(seconds):
    return f"{100 * (statistics.median(seconds) / min(seconds) - 1):.0f} %"


def memory_of(entry):
    return (entry["memory"]["after_kib"] - entry["memory"]["before_kib"]) * 1024


def text_line(name, e):
    mb, best = e["bytes"] / 1e6, min(e["read_s"])
    times = 1 + memory_of(e) / e["bytes"]
    return (name, f"{mb:.2f}", e["instructions"], f"{mb / best:.0f}", f"{mb / statistics.median(e['read_s']):.0f}", verdict(mb / best >= 80),
            f"{times:.1f}x", verdict(times <= 12))  # fmt: skip


def bytecode_line(name, e):
    best, median = min(e["read_s"]), statistics.median(e["read_s"])
    head = name, f"{e['bytes'] / 1e6:.1f}", e["instructions"]
    if name.startswith("constants"):
        payload = CONSTANT_MB / 4 * (4 << 20)
        peak = 1 + memory_of(e) / payload
        return (*head, f"{payload / best / 1e9:.1f} GB/s", f"{payload / median / 1e9:.1f}", f">= 1: {verdict(payload / best >= 1e9)}",
                f"{peak:.2f}x of the constants, file included", f"<= 1.2x: {verdict(peak <= 1.2)}")  # fmt: skip
    rate, each = e["instructions"] / best / 1e6, memory_of(e) / e["instructions"]
    return (*head, f"{rate:.2f} M/s", f"{e['instructions'] / median / 1e6:.2f}", f">= 1: {verdict(rate >= 1)}", f"{each:.0f} B per instruction",
            f"<= 800: {verdict(each <= 800)}")  # fmt: skip


def both_line(name, e):
    a, b = min(e["read_s"]), min(e["verify_s"])
    return f"{name} ({e['instructions']})", f"{a:.3f}", f"{b:.3f}", f"{a + b:.3f}", verdict(a + b < 1)


def run_line(name, e):
    best, twice = min(e["x1"]["run_s"]), min(e["x2"]["run_s"])
    each = best / e["x1"]["work"] * 1e9
    target = "" if e["target_ns"] is None else f"<= {e['target_ns']}: {verdict(each <= e['target_ns'])}"
    return name, f"{each:.1f}", noise(e["x1"]["run_s"]), target, f"{twice / best:.2f}x"


def section(data):
    read = data["read"]
    smallest = data["smallest"]["after_kib"] - data["smallest"]["before_kib"]
    twice = min(read["ops200k"]["read_s"]) / min(read["ops100k"]["read_s"])
    thin = read["ops100k, as hlo"]
    each = min(thin["read_s"]) / thin["instructions"] * 1e6
    texts = [text_line(name, e) for name, e in read.items() if e["kind"] != "bytecode"]
    bytecodes = [bytecode_line(name, e) for name, e in read.items() if e["kind"] == "bytecode"]
    return [
        f"## {machine(data['facts'])}", "", facts_line(data["facts"]),
        f"{data['facts']['repetitions']} repetitions. The tables and the code of the reader use {smallest} KiB for a program without instructions.", "",
        *table("text | MB | instructions | MB/s | median | at least 80 | peak memory, file included | at most 12x", texts), "",
        f"The target applies to the first three, the largest files of the corpus. `ops100k, as hlo` has {thin['bytes'] / thin['instructions']:.0f} bytes per",
        f"instruction, a third of theirs: the {each:.2f} us per instruction (its name, its allocations) limit the rate.", "",
        *table("bytecode | MB | instructions | rate | median | target | memory | target", bytecodes), "",
        "`ops` is the program of `bench/make_bytecode.py`; `locations` is the same with a source location per op. `constants` has",
        f"{CONSTANT_MB} MiB, which are not copied: a constant is read only up to the first two elements that differ. In `constants,",
        "read completely` these are the last ones, so every byte is read.",
        f"Reading twice the instructions takes {twice:.2f}x.", "",
        *table("100,000 instructions | read s | verify s | sum | below 1 s", (both_line(name, e) for name, e in read.items() if "100k" in name)), "",
        f"Dots are 128x256x256, convolutions 4x32x32x16 by 3x3x16x32, elementwise arrays have {ELEMENTS} elements.", "",
        *table("interpreter | ns per multiply-add or element | median above best | target | twice the size takes", (run_line(name, e) for name, e in data["run"].items())),
    ]  # fmt: skip
