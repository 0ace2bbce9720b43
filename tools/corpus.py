#!/usr/bin/env python3
"""Runs the corpora and prints the score: by group, by primitive, and every file that fails with its reason.

    tools/corpus.py                          everything; exit 1 below a bar of tests/corpus_bars.json
    tools/corpus.py --only stablehlo,jax     some corpora, or groups such as jax.hlo
    tools/corpus.py --filter scatter         files whose path contains this text
    tools/corpus.py --json out.json          the results as JSON

The corpora are read from $TOKAMAK_CORPUS and unpacked once into build/corpus.
Needs NumPy and ml_dtypes: those of .venv are used if this Python has none.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import importlib.util
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = 77
LIMIT_S = 60

try:
    import ml_dtypes
    import numpy as np
except ImportError:
    python = ROOT / ".venv/bin/python"
    if python.exists() and os.environ.get("TOK_REEXEC") != "1":
        os.environ["TOK_REEXEC"] = "1"
        os.execv(python, [str(python), *sys.argv])
    sys.exit("corpus.py needs NumPy and ml_dtypes: run scripts/bootstrap, which makes .venv")


class Result:
    """One file of one group."""

    def __init__(self, group, path, ok, reason="", primitive=None, seconds=0.0, note=""):
        self.group, self.path, self.ok = group, path, ok
        self.reason, self.primitive, self.seconds, self.note = reason, primitive, seconds, note


# ---- the corpora


def corpus_folder():
    """The folder that $TOKAMAK_CORPUS names; without it, a path below which nothing exists."""
    return Path(os.environ.get("TOKAMAK_CORPUS") or os.devnull)


def unpack(name, cache):
    """The folder with an archive's files, unpacked once per content. None without the archive."""
    archive = corpus_folder() / f"{name}.tar.zst"
    if not archive.exists():
        folder = corpus_folder() / name  # already unpacked: tests/gpu/run
        return folder if folder.is_dir() else None
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    folder = cache / f"{name}-{digest}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=cache))
        subprocess.run(["tar", "--zstd", "-xf", str(archive), "-C", str(part)], check=True)
        try:
            part.rename(folder)
        except OSError:  # another run was faster
            shutil.rmtree(part)
    return folder


def read_index(name):
    plain, packed = corpus_folder() / f"{name}.jsonl", corpus_folder() / f"{name}.jsonl.zst"
    if plain.exists():
        text = plain.read_text()
    else:
        text = subprocess.run(["zstd", "-dcq", str(packed)], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in text.splitlines()]


# ---- running tokamak


def first_error(report):
    """The first reason in a JSON report of `check` or `run`."""
    for place in [report, *report.get("programs", [])]:
        for error in place.get("errors", []):
            where = f" at {error['line']}:{error['column']}" if "line" in error else ""
            where = f" at byte {error['offset']}" if "offset" in error else where
            return f"{error['code']}{where}: {error['message']}".replace("\n", " ")[:300]
    return ""


class Batch:
    """Runs one command over many files in few processes. A file that ends the process or takes longer than LIMIT_S is reported as the
    culprit, and the rest continue in a new process. With `given` each file has its own inputs and outputs: {file: {"inputs": F, "outputs":
    F}}."""

    def __init__(self, command, given=None):
        self.command, self.given = command, given

    def run(self, files):
        reports, left = {}, list(files)
        while left:
            reports_now, blamed = self.run_once(left)
            reports.update(reports_now)
            left = [f for f in left if f not in reports]
            if left and blamed:
                reports[left[0]] = {"exit": -1, "died": blamed, "seconds": 0.0}
                left = left[1:]
        return reports

    def run_once(self, files):
        with tempfile.TemporaryFile("w+") as errors, tempfile.NamedTemporaryFile("w+", suffix=".json") as listed:
            if self.given is not None:
                json.dump([{"file": file, **self.given[file]} for file in files], listed)
                listed.flush()
            words = files if self.given is None else ["--batch", listed.name]
            process = subprocess.Popen([*self.command, *words], stdout=subprocess.PIPE, stderr=errors, text=True)
            lines = queue.Queue()

            def pump():
                for line in process.stdout:
                    lines.put(line)
                lines.put(None)

            threading.Thread(target=pump, daemon=True).start()
            reports, blamed = {}, ""
            begin = time.time()
            while True:
                try:
                    line = lines.get(timeout=LIMIT_S)
                except queue.Empty:
                    process.kill()
                    blamed = f"took longer than {LIMIT_S} s"
                    break
                if line is None:
                    break
                report = json.loads(line)
                report["seconds"] = time.time() - begin
                begin = time.time()
                reports[report["file"]] = report
            process.wait()
            if not blamed and len(reports) < len(files):
                errors.seek(0)
                blamed = f"ended the process ({process.returncode}): {errors.read()[-200:].strip()}"
            return reports, blamed


class Runner:
    def __init__(self, tokamak, jobs, backend="interp"):
        self.tokamak, self.jobs = str(tokamak), jobs
        # Constants become arguments: otherwise a compiler would evaluate the program and nothing would run.
        self.compiles = backend != "interp"
        self.run_flags = ["--backend", backend, *(["--hoist"] if self.compiles else [])]
        # The expected values are from a CPU, whose f32 products keep all bits; by default a GPU's do not, as in XLA.
        if backend in ("cuda", "sim-cuda", "sim-gpu"):
            self.run_flags += ["--precision", "highest"]

    def batch(self, command, files, size=40, given=None):
        """{file: report}, in parallel: `size` files per process, fewer if that keeps all jobs busy."""
        files = [str(f) for f in files]
        size = max(1, min(size, -(-len(files) // (2 * self.jobs))))
        chunks = [files[i : i + size] for i in range(0, len(files), size)]
        flags = self.run_flags if command[0] == "run" else []
        worker = Batch([self.tokamak, *command, *flags], given)
        reports = {}
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for part in pool.map(worker.run, chunks):
                reports.update(part)
        return reports

    def each(self, function, items):
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(function, items))

    def outputs_of(self, programs):
        """The result of `outputs` for each of {program: inputs}, many per process."""
        with tempfile.TemporaryDirectory() as folder:
            given = {str(program): {"inputs": str(inputs), "outputs": f"{folder}/{number}.npz"}
                     for number, (program, inputs) in enumerate(programs.items())}  # fmt: skip
            reports = self.batch(["run", "--json"], given, given=given)
            return {program: self.outcome(reports[str(program)], given[str(program)]["outputs"]) for program in programs}

    @staticmethod
    def outcome(report, out):
        seconds = report.get("seconds", 0.0)
        if report["exit"] != 0:
            return None, f"exit {report['exit']}: {failure_of(report)}", seconds
        try:
            with np.load(out) as arrays:
                return dict(arrays), "", seconds
        except (ValueError, OSError) as error:
            return None, f"the results cannot be read: {error}", seconds

    def outputs(self, program, inputs, *flags, interpreted=False):
        """(arrays, "", seconds) or (None, reason, seconds)."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out.npz"
            command = [self.tokamak, "run", str(program), "--json", "--outputs", str(out), "--inputs", str(inputs), *flags]
            command += ["--backend", "interp"] if interpreted else self.run_flags
            begin = time.time()
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
            except subprocess.TimeoutExpired:
                return None, f"took longer than {LIMIT_S} s", LIMIT_S
            seconds = time.time() - begin
            if done.returncode != 0:
                try:
                    reason = first_error(json.loads(done.stdout))
                except ValueError:
                    reason = ""
                return None, f"exit {done.returncode}: {reason or done.stderr[-200:].strip()}", seconds
            try:
                with np.load(out) as arrays:
                    return dict(arrays), "", seconds
            except ValueError as error:
                return None, f"the results cannot be read: {error}", seconds


def failure_of(report):
    return report.get("died") or first_error(report) or f"exit {report['exit']}"


# ---- comparing


def as_type(array, dtype):
    """Arrays of types that NumPy lacks are passed as their bits."""
    want = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    if array.dtype == want:
        return array
    if want.name in ("int4", "uint4", "int2", "uint2"):
        bits = int(want.name[-1])
        wide = array.astype(np.int8)
        return np.where(wide >= 1 << (bits - 1), wide - (1 << bits), wide) if want.name.startswith("i") else wide
    if array.dtype.itemsize != want.itemsize or array.dtype.kind not in "uV":
        raise TypeError(f"{array.dtype} is not {dtype}")
    return array.view(want)


def difference(got, expected, rtol, atol, exact=False):
    """"" or a description of the difference. NaN equals NaN; infinities equal themselves."""
    if got.shape != expected.shape:
        return f"shape {got.shape}, expected {expected.shape}"
    if expected.size == 0:
        return ""
    if exact or expected.dtype.kind in "biu":
        bad = int((got != expected).sum())
        return f"{bad} of {expected.size} integers differ" if bad else ""
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    g, e = got.astype(wide), expected.astype(wide)
    with np.errstate(all="ignore"):
        error = np.abs(g - e)
        ok = (g == e) | (np.isnan(g) & np.isnan(e)) | ((error <= atol + rtol * np.abs(e)) & np.isfinite(e))
        if ok.all():
            return ""
        at = int(np.argmin(ok.ravel()))
        return f"{int((~ok).sum())} of {ok.size} differ; first got {g.ravel()[at]}, expected {e.ravel()[at]}"


def xla_tolerance(dtype):
    return {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype, 1e-1 if dtype.startswith("float8") else 1e-4)


# ---- the groups


def read_results(group, reports, root, primitives=None):
    """Reads, prints in both forms, reads again. A rejection by the verifier is a note."""
    results = []
    for path, report in sorted(reports.items()):
        name = str(Path(path).relative_to(root))
        programs = report.get("programs", [])
        ok = bool(programs) and "died" not in report
        reason = failure_of(report) if not ok else ""
        note = ""
        for program in programs:
            trips = program.get("round_trip", {})
            if not program["read"] or not all(trips.get(form) for form in ("hlo", "mlir")):
                ok, reason = False, reason or trip_reason(program)
            elif not program["verified"]:
                note = note or f"check rejects: {first_error(program)}"
        primitive = (primitives or {}).get(name)
        results.append(Result(group, name, ok, reason, primitive, report.get("seconds", 0.0), note))
    return results


def trip_reason(program):
    for error in program.get("errors", []):
        if not program["read"] or error["code"] == "TK6014":
            return first_error({"errors": [error]})
    return first_error(program)


def stablehlo(runner, cache, wanted, matches):
    folder = unpack("stablehlo", cache)
    index = {entry["path"]: entry for entry in read_index("stablehlo_index") if matches(entry["path"])}
    root = folder / "dev"
    results = []
    if wanted("stablehlo.read"):
        reports = runner.batch(["check", "--json", "--round-trip"], [root / p for p in index])
        primitives = {path: entry["op"] for path, entry in index.items()}
        results += read_results("stablehlo.read", reports, root, primitives)
    checking = {p: e for p, e in index.items() if e["checks"]}
    groups = {p: stablehlo_group(root / p, e) for p, e in checking.items()}
    chosen = [root / p for p in checking if wanted(groups[p])]
    passed = []
    for path, report in sorted(runner.batch(["run", "--json"], chosen).items()):
        name = str(Path(path).relative_to(root))
        ok = report["exit"] == 0 and report.get("checks", 0) > 0
        reason = "" if ok else "no check was executed" if report["exit"] == 0 else failure_of(report)
        results.append(Result(groups[name], name, ok, reason, checking[name]["op"], report.get("seconds", 0.0)))
        if ok:
            passed.append(path)
    if wanted("stablehlo.corrupted"):
        results += corrupted(runner, passed, root)
    return results


def stablehlo_group(path, entry):
    if "RUN-DISABLED" in path.read_text(errors="replace"):
        return "stablehlo.disabled"
    if entry["quant"]:
        return "stablehlo.quantized"
    return "stablehlo.dynamic" if entry["dynamic"] else "stablehlo.checks"


def corrupted(runner, paths, root):
    """With every expected constant changed, every check must fail."""
    results = []
    for path, report in sorted(runner.batch(["run", "--json", "--corrupt"], paths).items()):
        name = str(Path(path).relative_to(root))
        count = sum(p.get("corrupted", 0) for p in report.get("programs", []))
        if count == 0 and "died" not in report:
            continue  # nothing to corrupt: no constant, or an empty one
        accepted = [i for i, p in enumerate(report.get("programs", [])) if p.get("corrupted") and p["exit"] != 1]
        ok = report["exit"] == 1 and not accepted
        reason = "" if ok else f"exit {report['exit']}; programs that were not rejected: {accepted[:5]}"
        results.append(Result("stablehlo.corrupted", name, ok, reason))
    return results


def xla(runner, cache, wanted, matches):
    root = unpack("xla_hlo", cache) / "dev"
    spec = importlib.util.spec_from_file_location("hlo_inputs", corpus_folder() / "hlo_inputs.py")
    inputs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(inputs)
    index = [e for e in read_index("xla_hlo_index") if matches(f"{e['kind']}/{e['name']}")]
    results = []
    if wanted("xla.parse"):
        files = [root / e["kind"] / f"{e['name']}.hlo" for e in index]
        reports = runner.batch(["check", "--json", "--round-trip"], files, size=10)
        results += read_results("xla.parse", reports, root)
    if wanted("xla.run"):
        chosen = [e for e in index if e["kind"] == "run"]
        ran = runner.outputs_of({root / "run" / f"{e['name']}.hlo": root / "run" / f"{e['name']}.npz" for e in chosen})
        results += runner.each(lambda e: xla_run(runner, root, e, ran), chosen)
    if wanted("xla.seeded"):
        chosen = [e for e in index if e["kind"] == "seeded"]
        results += runner.each(lambda e: xla_seeded(runner, root, e, inputs), chosen)
    return results


def xla_run(runner, root, entry, ran):
    name = f"run/{entry['name']}.hlo"
    data = root / "run" / f"{entry['name']}.npz"
    got, reason, seconds = ran[root / name]
    if got is not None:
        reason = compare_named(got, dict(np.load(data)), entry["outs"])
    if got is not None and reason:  # XLA leaves unspecified data after the elements of a bounded result
        reason = reason if run_rejects(runner, root / name, data, entry["outs"]) else ""
    return Result("xla.run", name, not reason, reason, None, seconds)


def run_rejects(runner, program, data, outs):
    """Whether `run --expect` finds a difference at the least tolerance of the results: with the backend, unless results have bounds."""
    flags = [] if "<=" in program.read_text() else runner.run_flags
    tolerance = str(min(xla_tolerance(dtype) for dtype, _ in outs))
    words = ["--inputs", str(data), "--expect", str(data), "--rtol", tolerance, "--atol", tolerance, *flags]
    done = subprocess.run([runner.tokamak, "run", str(program), *words], capture_output=True, timeout=LIMIT_S, check=False)
    return done.returncode != 0


def compare_named(got, expected, outs):
    if len(got) != len(outs):
        return f"{len(got)} results, expected {len(outs)}"
    for i, (dtype, _) in enumerate(outs):
        tolerance = xla_tolerance(dtype)
        try:
            left, right = as_type(got[f"out_{i}"], dtype), as_type(expected[f"out_{i}"], dtype)
        except (TypeError, KeyError) as error:
            return f"out_{i}: {error}"
        words = difference(left, right, tolerance, tolerance)
        if words:
            return f"out_{i} ({dtype}): {words}"
    return ""


def xla_seeded(runner, root, entry, inputs):
    name = f"seeded/{entry['name']}.hlo"
    with tempfile.TemporaryDirectory() as folder:
        given = {}
        for i, (dtype, shape) in enumerate(entry["params"]):
            want = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
            array = inputs.make_input(entry["seed_key"], i, tuple(shape), want)
            array = np.asarray(array)
            given[f"in_{i}"] = array.view(f"u{want.itemsize}") if want.kind == "V" or hasattr(ml_dtypes, dtype) else array
        data = Path(folder) / "in.npz"
        np.savez(data, **given)
        got, reason, seconds = runner.outputs(root / name, data)
    if got is not None:
        expected = dict(np.load(root / "seeded" / f"{entry['name']}.npz"))
        reason = compare_digests(got, expected, entry["outs"], inputs)
    return Result("xla.seeded", name, not reason, reason, None, seconds)


def compare_digests(got, expected, outs, inputs):
    for i, (dtype, _) in enumerate(outs):
        if f"out_{i}" not in got:
            return f"out_{i} is missing"
        tolerance = xla_tolerance(dtype)
        array = as_type(got[f"out_{i}"], dtype)
        index, values, sums = inputs.digest(array)
        if not np.array_equal(index, expected[f"idx_{i}"]):
            return f"out_{i}: {array.size} elements, expected another number"
        if dtype == "bfloat16":
            values = values.astype(np.float32)
        words = difference(values, expected[f"val_{i}"], tolerance, tolerance)
        if not words:
            scale = float(abs(expected[f"sum_{i}"][1])) * array.size
            words = difference(sums[:1], expected[f"sum_{i}"][:1], 0, tolerance * (scale + 1))
            words = words and "sum: " + words
        if words:
            return f"out_{i} ({dtype}): {words}"
    return ""


JAX_FORMS = {"jax.mlir": "stablehlo.mlir", "jax.vhlo": "vhlo.mlirbc", "jax.hlo": "hlo.txt"}


def jax(runner, cache, wanted, matches):
    root = unpack("jax", cache) / "dev"
    programs = sorted(p for p in root.iterdir() if (p / "meta.json").exists() and matches(p.name))
    results = []
    if wanted("jax.read"):
        files = [p / form for p in programs for form in JAX_FORMS.values() if (p / form).exists()]
        results += read_results("jax.read", runner.batch(["check", "--json", "--round-trip"], files, size=20), root)
    if wanted("jax.hash"):
        results += runner.each(lambda program: jax_hash(runner, program), programs)
    jobs = [(g, p, f) for g, f in JAX_FORMS.items() for p in programs if wanted(g) and (p / f).exists()]
    ran = runner.outputs_of({program / form: program / "io.npz" for _, program, form in jobs})
    results += runner.each(lambda job: jax_run(runner, *job, ran), jobs)
    return results


def jax_hash(runner, program):
    """Text and bytecode of one program are structurally equal after the default passes, or, where JAX expands a function in bytecode,
    give the same values."""
    forms = [program / form for form in ("stablehlo.mlir", "vhlo.mlirbc")]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{form.name}.hlo" for form in forms]
        for form, file in zip(forms, files):
            done = subprocess.run([runner.tokamak, "opt", str(form), "-o", str(file)], capture_output=True, text=True, timeout=LIMIT_S, check=False)
            if done.returncode != 0:
                return Result("jax.hash", program.name, False, f"{form.name}: {done.stderr.strip()[:300]}")
        reports = runner.batch(["check", "--json", "--hash"], files)
    hashes = {report["programs"][0].get("hash") for report in reports.values()}
    if len(reports) == 2 and len(hashes) == 1 and None not in hashes:
        return Result("jax.hash", program.name, True)
    values = []
    for form in forms:
        got, reason, _ = runner.outputs(form, program / "io.npz", interpreted=True)
        if got is None:
            return Result("jax.hash", program.name, False, f"{form.name}: {reason}")
        values.append(got)
    reason = jax_compare(values[1:], values[0], json.loads((program / "meta.json").read_text())["outputs"])
    return Result("jax.hash", program.name, not reason, reason and f"text and bytecode differ: {reason}")


def jax_run(runner, group, program, form, ran):
    meta = json.loads((program / "meta.json").read_text())
    data = program / "io.npz"
    expected = dict(np.load(data))

    # As in `run --expect`: with a tolerance, also compare with the oracle, which does not round intermediate results, and with subnormals
    # flushed to 0, as in XLA CPU, which computed the expected values (docs/numerics.md).
    opinions = []
    for flags in ([], ["--oracle"], ["--flush-subnormals"]):
        got, reason, taken = runner.outputs(program / form, data, *flags) if flags else ran[program / form]
        seconds = taken if not flags else seconds
        if got is None:
            break
        if runner.compiles:
            reason = jax_compare([got], expected, meta["outputs"])
            reason = reason and jax_by_reference(runner, program / form, data, got, expected, meta["outputs"])
            break
        opinions.append(got)
        reason = jax_compare(opinions, expected, meta["outputs"])
        if not reason:
            break
    return Result(group, f"{program.name}/{form}", not reason, reason, meta["family"], seconds)


def jax_by_reference(runner, program, data, mine, expected, outputs):
    """Results of a backend that differ from XLA's must equal the interpreter's, and one interpreter mode must agree with XLA."""
    opinions = []
    for flags in ([], ["--oracle"], ["--flush-subnormals"]):
        got, reason, _ = runner.outputs(program, data, *flags, interpreted=True)
        if got is None:
            return f"interpreted: {reason}"
        opinions.append(got)
    for i, out in enumerate(outputs):
        words = jax_compare_one(mine, expected, i, out)
        if words and jax_compare_one(mine, opinions[0], i, out):
            return f"out_{i} ({out['dtype']}): {words}; nor is it the interpreter's"
        if words and all(jax_compare_one(got, expected, i, out) for got in opinions):
            return f"out_{i} ({out['dtype']}): {words}; nor is the interpreter's"
    return ""


def jax_compare(opinions, expected, outputs):
    """Nothing if every result agrees with one of the opinions."""
    if len(opinions[0]) != len(outputs):
        return f"{len(opinions[0])} results, expected {len(outputs)}"
    for i, out in enumerate(outputs):
        words = [jax_compare_one(got, expected, i, out) for got in opinions]
        if all(words):
            return f"out_{i} ({out['dtype']}): {words[0]}"
    return ""


def jax_compare_one(got, expected, i, out):
    try:
        left, right = as_type(got[f"out_{i}"], out["dtype"]), as_type(expected[f"out_{i}"], out["dtype"])
    except (TypeError, KeyError) as error:
        return str(error)
    exact = right.dtype.kind in "biu" or out["rtol"] == out["atol"] == 0
    words = difference(left, right, out["rtol"], out["atol"], exact)
    return "" if exact and out["fragile"] and left.shape == right.shape else words


def pjrt(runner, cache, wanted, matches):
    root = unpack("pjrt_programs", cache)
    files = sorted(p for p in root.rglob("*") if p.suffix in (".bc", ".mlirbc") and matches(str(p.relative_to(root))))
    reports = runner.batch(["check", "--json", "--round-trip", "--histogram"], files)
    results = []
    if wanted("pjrt.decode"):
        results += read_results("pjrt.decode", reports, root)
    source = corpus_folder().parent / "facts" / "vhlo_reader.py"
    if wanted("pjrt.histogram") and source.exists():
        spec = importlib.util.spec_from_file_location("vhlo_reader", source)
        oracle = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(oracle)
        for path in files:
            results.append(pjrt_histogram(oracle, path, reports.get(str(path), {}), root))
    return results


def pjrt_histogram(oracle, path, report, root):
    module = oracle.load(path.read_bytes())
    oracle.dump(module, out=lambda _: None, locs=True)
    ours = report.get("bytecode_ops")
    ok = ours == dict(module.hist)
    reason = "" if ok else first_error(report) if ours is None else "the op counts differ"
    return Result("pjrt.histogram", str(path.relative_to(root)), ok, reason)


CORPORA = {"stablehlo": stablehlo, "xla": xla, "jax": jax, "pjrt": pjrt}


# ---- the score


def macro_average(results):
    by_primitive = collections.defaultdict(list)
    for result in results:
        if result.primitive is not None:
            by_primitive[result.primitive].append(result.ok)
    return {name: sum(oks) / len(oks) for name, oks in sorted(by_primitive.items())}


def print_score(results, bars, verbose):
    groups = collections.defaultdict(list)
    for result in results:
        groups[result.group].append(result)
    below = []
    for result in sorted(results, key=lambda r: (r.group, r.path)):
        if not result.ok:
            print(f"FAILED {result.group} {result.path}: {result.reason}")
        elif result.note and (verbose or result.group == "xla.parse"):
            print(f"note   {result.group} {result.path}: {result.note}")
    rates = macro_average([r for r in results if r.group == "stablehlo.checks"])
    poor = {name: rate for name, rate in rates.items() if rate < 1}
    if rates:
        print("\nby primitive (stablehlo.checks), those not full: " + (json.dumps(poor) if poor else "none"))
    print(f"\n{'group':22} {'passed':>6} {'of':>6} {'share':>8} {'bar':>6}  macro average, slowest")
    for group, members in sorted(groups.items()):
        passed = sum(r.ok for r in members)
        share = passed / len(members)
        macro = macro_average(members)
        average = f"{sum(macro.values()) / len(macro):.4f} over {len(macro)}" if macro else ""
        slowest = max(members, key=lambda r: r.seconds)
        slow = f"  {slowest.seconds:.1f} s {slowest.path}" if slowest.seconds > 1 else ""
        bar = bars.get(group)
        print(f"{group:22} {passed:6} {len(members):6} {share:8.4f} {bar if bar is not None else '-':>6}  {average}{slow}")
        if bar is not None and share < bar:
            below.append(group)
    return below


def shares(results, bars):
    """"jax.hlo 270 of 270 (bar 1.0), ..." in one line."""
    words = []
    for group in sorted({r.group for r in results}):
        oks = [r.ok for r in results if r.group == group]
        words.append(f"{group} {sum(oks)} of {len(oks)}" + (f" (bar {bars[group]:g})" if group in bars else ""))
    return ", ".join(words)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], epilog="See docs/testing.md.")
    parser.add_argument("--tokamak", default=ROOT / "build/bin/tokamak", help="the program (default: build/bin/tokamak)")
    parser.add_argument("--only", default="", help="corpora or groups, with commas")
    parser.add_argument("--filter", default="", help="only files whose path holds this text")
    parser.add_argument("--backend", default="interp", help="run on this backend (interp)")
    parser.add_argument("--json", help="write the results to this file")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("-v", "--verbose", action="store_true", help="notes of every group")
    return parser.parse_args()


def main():
    args = parse_arguments()
    if not corpus_folder().is_dir() or not list(corpus_folder().glob("*.jsonl*")):
        print("skipped: there are no corpora (TOKAMAK_CORPUS says where they are)")
        return 1 if os.environ.get("TOKAMAK_REQUIRE_CORPUS") == "1" else SKIPPED
    if not Path(args.tokamak).exists():
        sys.exit(f"{args.tokamak} is not built")
    cache = ROOT / "build/corpus"
    cache.mkdir(parents=True, exist_ok=True)
    only = [word for word in args.only.split(",") if word]
    wanted = lambda group: not only or any(group == o or group.startswith(o + ".") for o in only)
    matches = lambda path: args.filter in path
    runner = Runner(args.tokamak, args.jobs, args.backend)
    begin = time.time()
    results = []
    for name, run in CORPORA.items():
        if only and not any(o.split(".")[0] == name for o in only):
            continue
        if sys.stderr.isatty():
            print(f"{name} ...", file=sys.stderr)
        results += run(runner, cache, wanted, matches)
    bars = json.loads((ROOT / "tests/corpus_bars.json").read_text())
    below = print_score(results, bars, args.verbose)
    if args.json:
        Path(args.json).write_text(json.dumps([vars(r) for r in results], indent=1))
    failed = sum(not r.ok and r.group in below for r in results)
    tolerated = sum(not r.ok and r.group not in below for r in results)
    if tolerated:
        print(f"skipped: {tolerated} files fail in groups that meet their bar, or have none")
    print(f"{time.time() - begin:.0f} s" + (f"; below the bar: {', '.join(below)}" if below else ""))
    print(f"figure: {shares(results, bars)}")
    print(f"tally: {len(results) - failed - tolerated} passed, {failed} failed, {tolerated} skipped")
    return 1 if below or not results else 0


if __name__ == "__main__":
    sys.exit(main())
