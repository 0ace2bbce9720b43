"""Shared by the benchmarks over workloads.py: selecting workloads, a process for each, facts about the machine for the page."""
import argparse
import datetime
import fnmatch
import json
import math
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import own_python  # noqa: F401
import write_pages
from result_pages import common

ROOT = Path(__file__).resolve().parent.parent
NOT_BEGUN = "not begun in time"


def parser(text, name):
    """The common arguments; `name` is that of the data file."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--workloads", type=Path, default=ROOT / "bench/workloads.py")
    made.add_argument("--only", default="", help="NAME[:SIZE], with * and ?; commas between them")
    made.add_argument("--quick", action="store_true", help="the first size of each")
    made.add_argument("--seconds", type=float, default=math.inf, help="begin no workload after this time")
    made.add_argument("--out", type=Path, default=ROOT / "docs/results")
    made.add_argument("--name", default=name)
    made.add_argument("--worker", help=argparse.SUPPRESS)
    return made


def module(arguments):
    if not arguments.workloads.is_file():
        sys.exit("the workloads are not there: --workloads says where workloads.py is")
    sys.path.insert(0, str(arguments.workloads.resolve().parent))
    import workloads

    return workloads


def load(arguments, which):
    """The workload NAME:SIZE, with the JAX flags that it requires."""
    import jax

    work = module(arguments).workload(*which.split(":"))
    for flag, value in work.config.items():
        if hasattr(jax.config, flag):
            jax.config.update(flag, value)
    return work


def selected(arguments, sizes_of=None):
    """Names and sizes of the selected micro workloads; `sizes_of`: maps a name and the workload's sizes to the sizes to use."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    workloads = module(arguments)
    wanted = [p if ":" in p else p + ":*" for p in arguments.only.split(",") if p]
    for name in workloads.names("micro"):
        sizes = workloads.sizes(name)
        sizes = sizes_of(name, sizes) if sizes_of else sizes
        typed = [p.split(":")[1] for p in wanted if p.split(":")[0] == name and not set("*?[") & set(p)]
        for size in dict.fromkeys(sizes[: 1 if arguments.quick else None] + typed):
            if not wanted or any(fnmatch.fnmatch(f"{name}:{size}", p) for p in wanted):
                yield name, size


def child(script, arguments, flag, value, platforms, timeout, more=()):
    """The JSON line that the script prints in a separate process, or the error."""
    environment = {**os.environ, "JAX_PLATFORMS": platforms, "TOKAMAK_DEVICE": "cpu", "TOKAMAK_CACHE": "off",
                   "PYTHONPATH": f"{ROOT / 'python'}:{os.environ.get('PYTHONPATH', '')}"}  # fmt: skip
    command = [sys.executable, str(Path(script).resolve()), flag, value, "--workloads", str(arguments.workloads), *more]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {timeout} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1][:300]}
    return json.loads(lines[-1])


def listen(events):
    """Registers for the library's compile reports; the callback must outlive all calls."""
    from tokamak import _library

    callback = _library.REPORT_FN(lambda text, _: events.append(json.loads(text.decode())))
    _library.load().tok_set_report(callback, None)
    return callback


def facts_of(script):
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    jax = subprocess.run([sys.executable, "-c", "import jax; print(jax.__version__)"], capture_output=True, text=True).stdout.strip()
    commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, cwd=ROOT).stdout.strip()
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {"command": common.command(f"bench/{Path(script).name}"), "cpu": model, "cores": len(os.sched_getaffinity(0)),
            "memory": round(memory), "system": platform.platform(), "jax": jax, "commit": commit or "unknown",
            "load": os.getloadavg()[0], "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")}  # fmt: skip


def write(arguments, facts, rows, page):
    """Writes the data of a run and its page, whose text it returns."""
    common.save(arguments.out, arguments.name, {"facts": facts, "programs": rows})
    return write_pages.write(page, arguments.out, arguments.name)


def run(arguments, script, bench, sizes_of=None):
    """The main program of each benchmark over workloads. In a child process: prints the result of `bench.measure` for one workload and
    returns None. Otherwise returns one row per workload, by `bench.one`, prints `bench.said` about it, and writes the page as it goes."""
    if arguments.worker:
        print(json.dumps(bench.measure(arguments)))
        sys.stdout.flush()
        return None
    facts, rows, end = facts_of(script), [], time.monotonic() + arguments.seconds
    for name, size in selected(arguments, sizes_of):
        late = time.monotonic() > end
        row = {"workload": name, "size": size} | ({"skipped": NOT_BEGUN} if late else bench.one(arguments, f"{name}:{size}"))
        rows.append(row)
        print(f"{name} {size}: {row.get('error') or row.get('skipped') or bench.said(row)}", file=sys.stderr, flush=True)
        write(arguments, facts, rows, bench.PAGE)  # results so far are kept however this ends
    print(write(arguments, facts, rows, bench.PAGE))
    return rows
