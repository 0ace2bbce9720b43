#!/usr/bin/env python3
"""The speed of contractions: products, attention, convolutions, recurrences and models of Tokamak against XLA, interleaved in one process on one GPU,
and PyTorch beside them.

    bench/run_tensor_cores.py --seconds 440 --torch no           as many rows as fit; call it again until it says that none is left
    bench/run_tensor_cores.py --seconds 440 --torch only         PyTorch's rows
    bench/run_tensor_cores.py --only 'attention/*,bert/*'        some rows again: their labels are matched, commas between patterns
    bench/run_tensor_cores.py --list                             the rows, and which of them have results
    bench/run_tensor_cores.py --tiny --out build/dev/tiny        every row at a tiny size on a CPU: a test of this command

A run measures the rows without results (with --only: all that match), in the order of tensor_core_rows.FIRST, and writes
tensor_cores.json and the page after each, so that an interrupted one loses nothing; `--fresh` forgets earlier results. A time is
back-to-back calls with one wait at the end, the least of several turns that alternate between both sides; the spread is the median
over it. Training steps feed their results back and donate them. XLA runs the source that is fastest for it: attention is cuDNN's
kernel. A convolution is several in one program, over their number, because a call takes longer to dispatch than to compute.
PyTorch's rows run afterwards in a process of their own (bench/peers/torch_models.py; the fastest of its variants counts), and cold
compilations in a new process each.
"""
import argparse
import datetime
import fnmatch
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
TINY = "--tiny" in sys.argv
os.environ.setdefault("TOKAMAK_DEVICE", "cpu" if TINY else "cuda")
os.environ.setdefault("JAX_PLATFORMS", "tokamak,cpu" if TINY else "tokamak,cuda,cpu")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("TOKAMAK_CACHE", "off")
os.environ.setdefault("JAX_ENABLE_COMPILATION_CACHE", "false")
for build in ("build", "build-gpu"):
    if (library := ROOT / build / "lib/libtokamak.so").exists():
        os.environ.setdefault("PJRT_NAMES_AND_LIBRARY_PATHS", f"tokamak:{library}")

import own_python  # noqa: E402, F401, must be first: it may re-execute with another Python
import jax  # noqa: E402
import numpy as np  # noqa: E402
import run_products  # noqa: E402
import tensor_core_bars  # noqa: E402
import tensor_core_rows  # noqa: E402
import tokamak  # noqa: E402
import workloads  # noqa: E402
import write_pages  # noqa: E402
from differences import worst_difference  # noqa: E402
from result_pages import common  # noqa: E402

NAME = "tensor_cores"
PEER = "cpu" if TINY else "cuda"
TURNS = 7
TURN_S = 0.005 if TINY else 0.06  # a turn of a side; at least three calls
MOST_COMPARED = 1 << 24  # elements of a result that is fetched to compare both sides
COLD_LIMIT_S = 240
PRODUCT_MS = ("ms", "peer_ms", "library_ms", "device_ms", "peer_device_ms", "library_device_ms")
CONVOLUTION_CALLS = (("cudnn$convBias", tensor_core_bars.CUDNN_FUSED), ("cudnn$fusion", tensor_core_bars.CUDNN_FUSED), ("cudnn", "cuDNN"))
COPIES = 2 if TINY else 8  # convolutions in a program, with inputs that exceed L2 together
TORCH_ROW_S = 60  # a row of PyTorch with its compilation, at most


class Side:
    """A program on one platform; `copies`: that many of it in one call, each with inputs of its own."""

    def __init__(self, platform, fn, work, copies=1):
        self.device, self.carry, self.copies = jax.devices(platform)[0], work.carry, copies
        args, options = work.args, None
        if copies > 1:
            one = fn
            fn, args = (lambda *sets: [one(*args) for args in sets]), (work.args,) * copies
            options = {"tokamak_horizontal": "none"} if platform == "tokamak" else None  # they stay apart
        self.args = tuple(jax.tree.map(lambda x: jax.device_put(np.asarray(x), self.device), a) for a in args)
        jax.block_until_ready(self.args)
        begin = time.perf_counter()
        self.fn = jax.jit(fn, donate_argnums=tuple(range(work.carry))).lower(*self.args).compile(compiler_options=options)
        self.compile_s = time.perf_counter() - begin
        first = self.call()[0] if copies > 1 else self.call()
        self.first = [np.asarray(x) for x in jax.tree.leaves(first) if x.size <= MOST_COMPARED or copies > 1]
        self.times, self.calls = [], 1

    def call(self):
        out = self.fn(*self.args)
        if self.carry:
            self.args = (*out[: self.carry], *self.args[self.carry :])
        return out

    def turn(self, seconds):
        begin = time.perf_counter()
        for _ in range(self.calls):
            out = self.call()
        jax.block_until_ready(out)
        took = (time.perf_counter() - begin) / self.calls
        self.times.append(took / self.copies)
        self.calls = max(3, min(1000, int(seconds / took)))

    def result(self, prefix):
        times = self.times[1:] or self.times  # the first turn warms up
        return {f"{prefix}ms": min(times) * 1e3, f"{prefix}spread": statistics.median(times) / min(times), f"{prefix}compile_s": self.compile_s}


def arguments(row):
    """The row's workload, its arguments on the host."""
    with jax.default_device(jax.devices("cpu")[0]):
        work = workloads.workload(*row.workload(TINY))
        work.args = jax.tree.map(np.asarray, work.args)
    return work


def compared(ours, theirs, work, source):
    for _ in range(TURNS):
        for side in (ours, theirs):
            side.turn(TURN_S)
    return {**ours.result(""), **theirs.result("peer_"), "tflops": work.flops / min(ours.times) / 1e12 if work.flops else None,
            "difference": worst_difference(ours.first, theirs.first), "peer_source": source}  # fmt: skip


def of_workload(row):
    work = arguments(row)
    ours, source = Side("tokamak", work.fn, work), None
    if work.peer and not TINY:
        try:
            theirs, source = Side(PEER, work.peer, work), tensor_core_bars.CUDNN_ATTENTION
        except Exception as error:  # of this XLA: then it runs the same source
            source = f"the same source, because cuDNN's attention fails: {str(error)[:120]}"
    if source != tensor_core_bars.CUDNN_ATTENTION:
        theirs = Side(PEER, work.fn, work)
    got = compared(ours, theirs, work, source)
    if row.explained:
        library = libraries(work)
        got |= {"kernels": len(library), "library_calls": sum(map(bool, library))}
    return got


def libraries(work):
    """Of each kernel of the plan: the library that it is a call of, or None."""
    return [kernel["library"] for kernel in tokamak.explain(work.fn, *work.args, tokamak_target="h200").data["kernels"]]


def of_convolution(row):
    work = arguments(row)
    ours, theirs = (Side(platform, work.fn, work, COPIES) for platform in ("tokamak", PEER))
    text = theirs.fn.as_text()
    source = next((name for mark, name in CONVOLUTION_CALLS if mark in text), "a kernel of its own")
    return compared(ours, theirs, work, source) | {"plan": "library" if any(libraries(work)) else "own"}


def of_product(row):
    shape = next(s for s, r in zip(run_products.SHAPES, tensor_core_rows.products(run_products.SHAPES), strict=True) if r == row)
    if TINY:
        shape = (min(shape[0], 2), *(min(d, 33) for d in shape[1:4]), *shape[4:])
    sides = (run_products.Side("tokamak", run_products.OURS), run_products.Side(PEER))
    library = run_products.Side(PEER, [{}] if TINY else run_products.LIBRARY) if "own" in row.among else None
    got = run_products.measure(shape, sides, library)
    milliseconds = {name: got[name.replace("ms", "us")] / 1e3 for name in PRODUCT_MS if name.replace("ms", "us") in got}
    return {**milliseconds, "tflops": got["tflops"], "spread": got["spread"], "peer_spread": got["peer_spread"], "compile_s": got["compile_ms"] / 1e3,
            "peer_compile_s": got["peer_compile_ms"] / 1e3, "difference": got["difference"], "plan": "own" if got["own"] else "library",
            **({"library": got["library"]} if library else {})}  # fmt: skip


def cold(program, size, platform):
    """Seconds to lower and compile in this process, which has compiled nothing before."""
    with jax.default_device(jax.devices("cpu")[0]):
        work = workloads.workload(program, size)
        args = jax.tree.map(np.asarray, work.args)
    device = jax.devices(platform)[0]
    args = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=jax.sharding.SingleDeviceSharding(device)), args)
    begin = time.perf_counter()
    jax.jit(work.fn, donate_argnums=tuple(range(work.carry))).lower(*args).compile()
    print(json.dumps({"compile_s": time.perf_counter() - begin}))


def of_compile(row):
    made = {}
    for prefix, platform in (("", "tokamak"), ("peer_", PEER)):
        command = [sys.executable, __file__, "--cold", ":".join((*row.workload(TINY), platform)), *["--tiny"] * TINY]
        environment = {**os.environ, "JAX_PLATFORMS": platform if platform == "cpu" else f"{platform},cpu"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=COLD_LIMIT_S, env=environment)
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or ["no output"])[-1][:200])
        made[f"{prefix}compile_s"] = json.loads(done.stdout.strip().splitlines()[-1])["compile_s"]
    return made


MEASURE = {"workload": of_workload, "product": of_product, "convolution": of_convolution, "compile": of_compile}


def torch_rows(labels, seconds):
    """{label: {"torch_ms": ..., "torch": variant}} or {"torch_why": ...}, from a process of their own; "cudnn_ms": with cuDNN's own fusion."""
    script = ROOT / "bench/peers/torch_models.py"
    if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode:
        return {label: {"torch_why": "no torch here"} for label in labels}
    command = [sys.executable, str(script), "--seconds", str(seconds), *["--tiny"] * TINY, *labels]
    try:
        text = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=seconds + TORCH_ROW_S).stdout
    except subprocess.TimeoutExpired as error:
        text = (error.stdout or b"").decode() if isinstance(error.stdout, bytes) else error.stdout or ""
    got = {}
    for line in text.splitlines():
        record = json.loads(line) if line.startswith("{") else {}
        if "label" in record:
            got.setdefault(record.pop("label"), []).append(record)
    best = {}
    for label, records in got.items():
        timed = [r for r in records if "ms" in r]
        fastest = min(timed, key=lambda r: r["ms"], default=None)
        best[label] = ({"torch_ms": fastest["ms"], "torch": fastest["variant"]} if fastest else {"torch_why": records[0].get("error", "-")[:160]})
        fused = [r["ms"] for r in timed if r["variant"].startswith("cuDNN")]
        best[label] |= {"cudnn_ms": min(fused)} if fused else {}
        for r in records:
            if "error" in r:
                print(f"torch: {label}, {r['variant']}: {r['error']}", flush=True)
    return best


def spoken(row, got):
    if "compile_s" not in got and "error" not in got:
        return f"{row.label:52} {got}"
    if "error" in got:
        return f"{row.label:52} FAILED {got['error']}"
    bar = "" if got.get("met") is None else f"  bar {row.bar[0]} {row.bar[1]:g}: {got['figure']:.3g}, {'met' if got['met'] else 'missed'}"
    if row.kind == "compile":
        return f"{row.label:52} compiles in {got['compile_s']:.2f} s, XLA {got['peer_compile_s']:.2f}{bar}"
    rate = f"  {got['tflops']:6.1f} TFLOP/s" if got.get("tflops") else ""
    more = "".join(f"  {name} {got[key]:.4g}" for name, key in (("torch", "torch_ms"), ("cuDNN fused", "cudnn_ms"), ("library", "library_ms"), ("on the device", "device_ms"),
                                                               ("XLA's", "peer_device_ms"), ("library's", "library_device_ms")) if key in got)  # fmt: skip
    plan = f"  {got['plan']}" if "plan" in got else f"  {got['library_calls']} of {got['kernels']} kernels are library calls" if "kernels" in got else ""
    return (f"{row.label:52} {got['ms']:9.4g} ms  XLA {got['peer_ms']:9.4g}  ratio {got['peer_ms'] / got['ms']:5.2f}{more}{rate}{plan}"
            f"  difference {got['difference']:.1e}{bar}")  # fmt: skip


class Results:
    """tensor_cores.json: the results by label, each with its date."""

    def __init__(self, options, rows):
        self.options, self.rows = options, rows
        path = options.out / f"{NAME}.json"
        old = json.loads(path.read_text()) if path.is_file() and not options.fresh else {}
        self.got = {entry["label"]: entry for entry in old.get("rows", [])}
        self.commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, cwd=ROOT).stdout.strip()

    def put(self, row, got, keep=False):
        """`keep`: adds to the row's result."""
        now = f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M}"
        before = self.got.get(row.label, {}) if keep else {k: v for k, v in self.got.get(row.label, {}).items() if k.startswith(("torch", "cudnn"))}
        self.got[row.label] = {**before, "label": row.label, "kind": row.kind, "when": before.get("when", now) if keep else now, **got}
        self.save()

    def save(self):
        for row in self.rows:
            if row.label in self.got:
                self.got[row.label]["bar"] = list(row.bar)
                tensor_core_bars.derive(row, self.got)
        self.summaries = tensor_core_bars.summarize(self.rows, self.got)
        facts = {"command": common.command("bench/run_tensor_cores.py"), "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
                 "device": jax.devices(PEER)[0].device_kind, "jax": jax.__version__, "commit": self.commit, "tiny": TINY}  # fmt: skip
        common.save(self.options.out, NAME, {"facts": facts, "summaries": self.summaries, "rows": [self.got[r.label] for r in self.rows if r.label in self.got]})
        write_pages.write(NAME, self.options.out)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="labels, with * and ?; commas between them")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no row after this time")
    parser.add_argument("--torch", choices=("yes", "no", "only"), default="yes", help="PyTorch's rows: too, not, alone")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes on a CPU")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--out", type=Path, default=ROOT / ("build/dev/tiny" if TINY else "docs/results"), help="a folder for the JSON and the page")
    parser.add_argument("--cold", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = parsed()
    if options.cold:
        return cold(*options.cold.split(":"))
    begin, rows = time.monotonic(), tensor_core_rows.rows(run_products.SHAPES)
    results = Results(options, rows)
    patterns = [p for p in options.only.split(",") if p]
    chosen = [r for r in rows if not patterns or any(fnmatch.fnmatch(r.label, p) or p == r.group for p in patterns)]
    if options.list:
        for row in chosen:
            print(spoken(row, results.got[row.label]) if row.label in results.got else row.label)
        return 0
    done = lambda row: "compile_s" in results.got.get(row.label, {})  # noqa: E731
    todo = [r for r in chosen if patterns or not done(r)] if options.torch != "only" else []
    todo.sort(key=lambda row: tensor_core_rows.FIRST.index(row.group))
    for at, row in enumerate(todo):
        if time.monotonic() - begin > options.seconds:
            print(f"left for another call: {', '.join(r.label for r in todo[at:])}")
            break
        started = time.monotonic()
        try:
            got = MEASURE[row.kind](row)
        except Exception as error:  # a row that fails must not cost the others
            got = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        jax.clear_caches()
        results.put(row, {**got, "seconds": time.monotonic() - started})
        print(f"[{time.monotonic() - begin:5.0f} s, {time.monotonic() - started:4.1f}] {spoken(row, results.got[row.label])}", flush=True)
    left = options.seconds - (time.monotonic() - begin)
    wanted = [r for r in chosen if r.kind != "compile" and (patterns or "torch_ms" not in results.got.get(r.label, {}))]
    wanted.sort(key=lambda row: tensor_core_rows.TORCH_FIRST.index(row.group))
    if options.torch != "no" and left > TORCH_ROW_S / 2 and wanted:
        by_label = {r.label: r for r in wanted}
        got = torch_rows(list(by_label), 1e9 if left == math.inf else left)
        for label, one in got.items():
            if "torch_ms" in one or label in results.got:
                results.put(by_label[label], one, keep=True)
        print(f"[{time.monotonic() - begin:5.0f} s] torch: {sum('torch_ms' in one for one in got.values())} of {len(wanted)} rows")
    missing = [r.label for r in rows if not done(r)]
    failed = [r.label for r in todo if r.label in results.got and "error" in results.got[r.label]]
    results.save()
    for summary in results.summaries:
        print(tensor_core_bars.spoken(summary))
    bars = [e for e in [*results.got.values(), *results.summaries] if e.get("met") is not None]
    print(f"{len(rows) - len(missing)} of {len(rows)} rows have results, {len(failed)} failed now, {sum(e['met'] for e in bars)} of {len(bars)} bars are met; "
          f"{'none left' if not missing else f'left: {len(missing)}'}")  # fmt: skip
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
