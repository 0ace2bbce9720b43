"""What the benchmarks over ../shared/bench share: which workloads, a process for each, what a page says of the machine."""
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

ROOT = Path(__file__).resolve().parent.parent


def parser(text, name):
    """Arguments that all take; `name` is the page's."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--workloads", type=Path, default=ROOT / "../shared/bench/workloads.py")
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
    """The workload NAME:SIZE, with the flags of JAX that it asks for."""
    import jax

    work = module(arguments).workload(*which.split(":"))
    for flag, value in work.config.items():
        if hasattr(jax.config, flag):
            jax.config.update(flag, value)
    return work


def selected(arguments, most=None):
    """Names and sizes of the micro workloads that are asked for, at most so many sizes of each."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    workloads = module(arguments)
    wanted = [p if ":" in p else p + ":*" for p in arguments.only.split(",") if p]
    for name in workloads.names("micro"):
        sizes = workloads.sizes(name)
        typed = [p.split(":")[1] for p in wanted if p.split(":")[0] == name and not set("*?[") & set(p)]
        for size in dict.fromkeys(sizes[: 1 if arguments.quick else most] + typed):
            if not wanted or any(fnmatch.fnmatch(f"{name}:{size}", p) for p in wanted):
                yield name, size


def child(script, arguments, flag, value, platforms, timeout, more=()):
    """The JSON line that the script prints in a process of its own, or what went wrong."""
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
    """Has the library say what it compiles; the callback must live as long as it may be called."""
    from tokamak import _library

    callback = _library.REPORT_FN(lambda text, _: events.append(json.loads(text.decode())))
    _library.load().tok_set_report(callback, None)
    return callback


def mean(values):
    """The geometric mean."""
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 0


def facts_of(script):
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    jax = subprocess.run([sys.executable, "-c", "import jax; print(jax.__version__)"], capture_output=True, text=True).stdout.strip()
    commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, cwd=ROOT).stdout.strip()
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {"command": " ".join([f"bench/{Path(script).name}", *sys.argv[1:]]), "cpu": model, "cores": len(os.sched_getaffinity(0)),
            "memory": round(memory), "system": platform.platform(), "jax": jax, "commit": commit or "unknown",
            "load": os.getloadavg()[0], "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")}  # fmt: skip


def write(arguments, facts, rows, page):
    """The page and its raw figures; the page's text."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / f"{arguments.name}.json").write_text(json.dumps({**facts, "programs": rows}, indent=1) + "\n")
    text = page(facts, rows)
    (arguments.out / f"{arguments.name}.md").write_text(text)
    return text


def run(arguments, script, bench, most=None):
    """What each benchmark over workloads does. In a process of its own: prints what `bench.measure` gives of one workload, and gives None.
    Else gives a row a workload, by `bench.one`, says what `bench.said` says of it, and writes the page as it goes."""
    if arguments.worker:
        print(json.dumps(bench.measure(arguments)))
        sys.stdout.flush()
        return None
    facts, rows, end = facts_of(script), [], time.monotonic() + arguments.seconds
    for name, size in selected(arguments, most):
        row = {"workload": name, "size": size}
        row |= {"skipped": "not begun in time"} if time.monotonic() > end else bench.one(arguments, f"{name}:{size}")
        rows.append(row)
        print(f"{name} {size}: {row.get('error') or row.get('skipped') or bench.said(row)}", file=sys.stderr, flush=True)
        write(arguments, facts, rows, bench.page)  # what is there stays, however this ends
    print(write(arguments, facts, rows, bench.page))
    return rows
