#!/usr/bin/env python3
"""Hardware counters of XLA and Tokamak, before and after fusion: instructions, stalls, registers, DRAM bytes.

    bench/counters.py                          the workloads of DEFAULT, on XLA and on Tokamak unfused, by the paper's rules and searched
    bench/counters.py --only softmax:1024x1000,cartpole_naive:2048 --out DIR

NVIDIA's `ncu` reads them if the driver permits; otherwise a row gives the reason. A program is compiled and called once, then one
call is profiled: each kernel is replayed until all counters are read, so times are of the kernels alone, at a fixed clock. Sums are over
the kernels of that call; registers and occupancy are means over its launches. A stall is a cycle in which a resident warp issues nothing.
Writes counters.json and the page counters.md in docs/results.
"""
import argparse
import csv
import ctypes
import datetime
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import paper_counters
import write_pages
from result_pages import common
from result_pages.counters import shown

ROOT = Path(__file__).resolve().parent.parent
DEFAULT = "cartpole_naive:2048,layernorm_dropout:8192x768,ew_chain:16777216,softmax:16384x4096,adam:small200"
METRICS = {
    "smsp__inst_executed.sum": "instructions",
    "smsp__inst_issued.sum": "issued",
    "smsp__warps_active.sum": "warp_cycles",
    "dram__bytes.sum": "bytes",
    "gpu__time_duration.sum": "ns",
    "launch__registers_per_thread": "registers",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy",
}
SIDES = [("XLA", "cuda", {}), ("Tokamak, unfused", "tokamak", {"tokamak_fusion": "none"}),
         ("Tokamak, the paper's rules", "tokamak", {"tokamak_fusion": "rules"}), ("Tokamak", "tokamak", {})]  # fmt: skip
SCALE = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "K": 1e3, "M": 1e6, "G": 1e9}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=Path, default=ROOT / "bench/workloads.py")
    parser.add_argument("--only", default=DEFAULT, help="NAME:SIZE, commas between them")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one program on one side")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def work(options):
    """The profiled process: nothing before the start of the profiler is counted."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    sys.path.insert(0, str(options.workloads.resolve().parent))
    import workloads

    name, size, platform, choices = json.loads(options.worker)
    with jax.default_device(jax.devices("cpu")[0]):
        task = workloads.workload(name, size)
    device = jax.devices(platform)[0]
    args = jax.block_until_ready([jax.tree.map(lambda x: jax.device_put(x, device), a) for a in task.args])
    fn = jax.jit(task.fn).lower(*args).compile(compiler_options=choices or None)
    jax.block_until_ready(fn(*args))
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuProfilerStart()
    jax.block_until_ready(fn(*args))
    driver.cuProfilerStop()


def number(text, unit):
    """In bytes, nanoseconds, or unchanged; None if the counter could not be read."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    if unit.endswith("byte"):
        return value * SCALE.get(unit[:-4], 1)
    if unit in ("second", "nsecond", "usecond", "msecond", "s", "ns", "us", "ms"):
        return value * SCALE.get(unit[0] if unit not in ("second", "s") else "", 1) * 1e9
    return value


def counted(options, ncu, label, platform, choices):
    name, size = label.split(":", 1)
    command = [ncu, "--csv", "--profile-from-start", "off", "--metrics", ",".join(METRICS), sys.executable, __file__,
               "--workloads", str(options.workloads), "--worker", json.dumps([name, size, platform, choices])]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit)
    except subprocess.TimeoutExpired:
        return {"why": f"not done after {options.limit:.0f} s"}
    lines = done.stdout.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        why = [line for line in lines + done.stderr.splitlines() if "ERR" in line or "rror" in line]
        return {"why": (why or ["ncu gave no counters"])[-1][:200]}
    sums, launches = dict.fromkeys(METRICS.values(), 0.0), set()
    for row in csv.DictReader(lines[begin:]):
        value = number(row["Metric Value"], row["Metric Unit"])
        key = METRICS.get(row["Metric Name"])
        if key is None:
            continue
        launches.add(row["ID"])
        sums[key] = None if value is None or sums[key] is None else sums[key] + value
    count = len(launches)
    for key in ("registers", "occupancy"):
        sums[key] = None if sums[key] is None else sums[key] / max(count, 1)
    if sums["warp_cycles"] is not None and sums["issued"] is not None:
        sums["stalls"] = sums["warp_cycles"] - sums["issued"]
    return {"kernels": count, **sums}


def main():
    options = arguments()
    if options.worker:
        work(options)
        return 0
    ncu = paper_counters.ncu()
    if ncu is None:
        sys.exit("counters: there is no ncu here (it comes with CUDA's toolkit)")
    rows = []
    for label in options.only.split(","):
        for side, platform, choices in SIDES:
            row = {"program": label, "side": side, **counted(options, ncu, label, platform, choices)}
            rows.append(row)
            print(f"{label:32} {side:28} " + (row.get("why") or f"{row['kernels']} kernels, {shown(row['instructions'], 1e-6)} M instructions, "
                  f"{shown(row.get('stalls'), 1e-6)} M stalls, {shown(row['registers'])} registers, {shown(row['ns'], 1e-3)} us"), flush=True)  # fmt: skip
    smi = shutil.which("nvidia-smi") or "true"
    device = subprocess.run([smi, "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True).stdout.strip()
    jax = subprocess.run([sys.executable, "-c", "import importlib.metadata as m; print(m.version('jax'))"], capture_output=True, text=True).stdout.strip()
    name, _, driver = device.partition(", ")
    facts = {"command": common.command("bench/counters.py"), "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
             "device": name, "driver": driver, "jax": jax}  # fmt: skip
    common.save(options.out, "counters", {"facts": facts, "rows": rows})
    print(write_pages.write("counters", options.out))
    return 0 if any("why" not in r for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
