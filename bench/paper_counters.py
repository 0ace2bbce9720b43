"""Hardware counters for bench/paper (E7), read by NVIDIA's ncu if available and permitted; otherwise the reason why not."""
import csv
import glob
import io
import json
import shutil
import subprocess
import sys

METRICS = {"gpu__time_duration.sum": "ns", "dram__bytes_read.sum": "read", "dram__bytes_write.sum": "written", "smsp__inst_executed.sum": "instructions",
           "sm__warps_active.avg.pct_of_peak_sustained_active": "warps"}  # fmt: skip
FIRST, COUNT = 24, 14  # launches that are skipped, and that are read: two steps if a step has seven kernels


def ncu():
    return shutil.which("ncu") or next(iter(sorted(glob.glob("/usr/local/cuda*/bin/ncu") + glob.glob("/opt/nvidia/nsight-compute/*/ncu"))), None)


def read(text):
    """{kernel: {metric: mean}} and the number of launches, from ncu's CSV."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    found, launches = {}, set()
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        name = METRICS.get(row.get("Metric Name"))
        if name:
            launches.add(row["ID"])
            found.setdefault(row["Kernel Name"][:48], {}).setdefault(name, []).append(float(row["Metric Value"].replace(",", "")))
    return {kernel: {name: sum(of) / len(of) for name, of in metrics.items()} | {"launches": max(map(len, metrics.values()))} for kernel, metrics in found.items()}, len(launches)


def ask(command, environment, first, seconds, stdin=None):
    """The counters of a command: {kernels, launches}, or {why}."""
    tool = ncu()
    if not tool:
        return {"why": "no ncu on this machine"}
    words = [tool, "--csv", "--print-units", "base", "--target-processes", "all", "--metrics", ",".join(METRICS), "--launch-skip", str(first), "--launch-count", str(COUNT)]
    try:
        done = subprocess.run([*words, *command], env=environment, input=stdin, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"why": f"ncu took more than {seconds:.0f} s"}
    kernels, launches = read(done.stdout)
    if not kernels:
        said = [line for line in (done.stdout + done.stderr).splitlines() if "ERR" in line or "rror" in line]
        return {"why": "ncu: " + (said or ["it saw no kernel"])[0][:200]}
    return {"kernels": kernels, "launches": launches}


def all_sides(tokamak, program, worker, task, environment):
    """XLA, the paper's rules and Tokamak on the plain program."""
    run = [tokamak, "run", program, "--backend", "cuda", "--seed", "1", "--outputs", "/dev/null"]
    return {"XLA": ask([sys.executable, worker], environment, FIRST, 90, json.dumps(task)),
            "Tokamak `rules`": ask([*run, "--fusion", "rules"], environment, FIRST, 60),
            "Tokamak": ask(run, environment, 0, 60)}  # fmt: skip
