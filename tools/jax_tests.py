#!/usr/bin/env python3
"""Measures how much of JAX runs on Tokamak: JAX's primitive harnesses and JAX's own tests, over several processes.

    tools/jax_tests.py harnesses --out DIR -j 16             run_harnesses.py of the corpora, without and with --x64
    tools/jax_tests.py tests FOLDER --out DIR -j 16          JAX's tests in FOLDER (not in this repository), on JAX's CPU
                                                             and on Tokamak
    tools/jax_tests.py tests FOLDER --only fft_test,nn_test --out DIR
    tools/jax_tests.py tests FOLDER --peer misses --out DIR  in half the time: on JAX's CPU only the failures on Tokamak
    tools/jax_tests.py report DIR                            prints the results in DIR again

Everything is split into small shards that idle processes take, so that all finish at about the same time. A case that
gives no result within --case-seconds is killed and counts as a miss under its name, as does one that ends its process; the rest
of its shard continues in another process. With --seconds N it ends by then: cases that were not started count as not run.
Results go to DIR/harnesses.json and DIR/tests.json after every shard; a second run does only what is missing there
(--rerun: everything). The Python that runs this needs jax, absl-py and, for some tests, scipy, but not pytest.
"""
import argparse
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKER = Path(__file__).resolve().with_name("jax_worker.py")
# The files of JAX's tests that are run by default.
FILES = ("lax_test", "lax_numpy_test", "lax_numpy_indexing_test", "lax_control_flow_test", "lax_autodiff_test",
         "lax_vmap_test", "nn_test", "random_test", "random_lax_test", "api_test", "python_callback_test", "linalg_test",
         "fft_test")  # fmt: skip
MISSES = ("failed", "error", "hang", "crash")
DEATHS = ("*** SIG", "what():", "terminate called", "Check failed", "Fatal Python error", "ERROR: AddressSanitizer")
START_SECONDS = 120  # to import JAX and a file of tests on a busy machine


class Shard:
    """Cases for one process. `where` names what they share (a platform, a file); `command` runs them."""

    def __init__(self, where, ids, command, env):
        self.where, self.ids, self.command, self.env = where, ids, command, env


class Running:
    """A shard's process."""

    def __init__(self, shard, folder, number):
        self.shard = shard
        self.base = folder / f"{number:05d}"
        self.ids, self.events, self.log = (Path(f"{self.base}.{end}") for end in ("ids", "events", "log"))
        self.ids.write_text(json.dumps(shard.ids))
        self.events.touch()
        self.results, self.begun, self.setup = {}, None, ""
        self.read = {}
        self.last = time.time()
        command = [str(part).format(ids=self.ids, events=self.events) for part in shard.command]
        self.process = subprocess.Popen(command, env=shard.env, stdout=self.log.open("w"), stderr=subprocess.STDOUT,
                                        stdin=subprocess.DEVNULL, start_new_session=True, cwd=folder)  # fmt: skip

    def look(self):
        """Reads the events written since the last call."""
        for path in (self.events, Path(f"{self.events}.results")):
            if not path.exists():
                continue
            with path.open() as file:
                file.seek(self.read.get(path, 0))
                while (line := file.readline()).endswith("\n"):
                    self.read[path] = file.tell()
                    self.take(json.loads(line))

    def take(self, event):
        self.last = time.time()
        if "begun" in event:
            self.begun = event["begun"]
        elif "setup" in event:
            self.setup = event["setup"]
        else:
            name = event.pop("id", None) or event["name"]
            event.setdefault("error", event.get("err", ""))
            self.results[name] = event

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def last_words(self):
        """The most informative line of its output: the cause of death, or the last one."""
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        telling = [line for line in lines if any(word in line for word in DEATHS)]
        return (telling or lines or ["it said nothing"])[-1][:300]


class Pool:
    """Runs shards, `jobs` at a time. done(shard, results) is called after each; results: {id: {"outcome": ...}}."""

    def __init__(self, arguments, done):
        self.arguments, self.done = arguments, done
        self.until = time.time() + arguments.seconds if arguments.seconds else None
        self.folder = Path(tempfile.mkdtemp(prefix="jax_tests."))
        self.began = time.time()
        self.number = 0  # number of processes started

    def run(self, shards):
        waiting, running = collections.deque(shards), []
        total, finished, misses = sum(len(shard.ids) for shard in shards), 0, 0
        while waiting or running:
            late = self.until is not None and time.time() > self.until
            while waiting and not late and len(running) < self.arguments.jobs:
                self.number += 1
                running.append(Running(waiting.popleft(), self.folder, self.number))
            if late:
                waiting.clear()
            for one in list(running):
                ended, results, rest = self.step(one, late)
                if not ended:
                    continue
                running.remove(one)
                if rest and not late:
                    waiting.append(Shard(one.shard.where, rest, one.shard.command, one.shard.env))
                finished += len(one.shard.ids) - len(rest)
                misses += sum(result["outcome"] in MISSES for result in results.values())
                self.done(one.shard, results)
                spent = time.time() - self.began
                print(f"\r{finished}/{total} done, {misses} without success, {spent:.0f} s ", end="", file=sys.stderr)
            time.sleep(0.05)
        print(file=sys.stderr)

    def step(self, one, late):
        """Whether its process has ended; its results; its remaining cases."""
        code = one.process.poll()
        one.look()
        quiet = time.time() - one.last
        allowed = self.arguments.case_seconds if one.read else max(START_SECONDS, self.arguments.case_seconds)
        hangs = code is None and quiet > allowed
        if code is None and not hangs and not late:
            return False, {}, []
        if code is None:
            one.kill()
            one.look()
        results = one.results
        rest = [name for name in one.shard.ids if name not in results]
        culprit = one.begun if one.begun in rest else None
        if late and not hangs and code is None:
            return True, results, rest
        if hangs and culprit:
            results[culprit] = {"outcome": "hang", "error": f"no result in {quiet:.0f} s", "seconds": quiet}
        elif culprit:
            results[culprit] = {"outcome": "crash", "error": f"the process ended with {code}: {one.last_words()}"}
        elif code == 0 and not one.setup:  # the runner itself skipped the remaining ones
            results.update({name: {"outcome": "skipped", "error": "not taken by the runner"} for name in rest})
        elif rest:
            said = one.setup or ("it did not begin" if hangs else one.last_words())
            results.update({name: {"outcome": "error", "error": said} for name in rest})
        return True, results, [name for name in rest if name not in results]


def environment(platforms, arguments, **more):
    package = str(arguments.package or ROOT / "python")
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "JAX_PLATFORMS": platforms, "PYTHONPATH": package + (os.pathsep + path if path else ""),
            "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **more}  # fmt: skip


def cut(ids, size):
    """Every n-th, so that neighbours, which take about equally long, go to different shards."""
    count = max(1, -(-len(ids) // size))
    return [ids[i::count] for i in range(count) if ids[i::count]]


def listed(pool, commands):
    """The ids that each worker lists: {key: ids}. A file that cannot be listed has none, and is reported."""
    found = {}
    with_out = {key: pool.folder / f"list.{number}.json" for number, key in enumerate(commands)}
    waiting, running = list(commands.items()), []
    while waiting or running:
        while waiting and len(running) < pool.arguments.jobs:
            key, (command, env) = waiting.pop(0)
            process = subprocess.Popen([*command, with_out[key]], env=env, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True, cwd=pool.folder)  # fmt: skip
            running.append((key, process))
        key, process = running.pop(0)
        try:
            said, _ = process.communicate(timeout=max(START_SECONDS, pool.arguments.case_seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
        if process.returncode == 0:
            found[key] = json.loads(with_out[key].read_text())
        else:
            lines = said.strip().splitlines() or [f"exit code {process.returncode}"]
            print(f"{key}: cannot be listed: {lines[-1][:300]}")
    return found


class Store:
    """Results on disk: {where: {id: result}}."""

    def __init__(self, path, again):
        self.path = path
        self.results = json.loads(path.read_text())["results"] if path.exists() and not again else {}
        self.written = 0.0

    def missing(self, where, ids):
        have = self.results.setdefault(where, {})
        return [name for name in ids if name not in have]

    def add(self, shard, results):
        self.results.setdefault(shard.where, {}).update(results)
        if time.time() - self.written > 5:
            self.write()

    def write(self, **facts):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps({"command": "tools/jax_tests.py " + " ".join(sys.argv[1:]), **facts,
                                    "results": self.results}, indent=0))  # fmt: skip
        part.replace(self.path)
        self.written = time.time()


# ---- the harnesses


def run_harnesses(arguments):
    script = Path(arguments.script or os.environ.get("TOKAMAK_CORPUS") or os.devnull).resolve()
    script = script / "run_harnesses.py" if script.is_dir() else script
    if not script.is_file():
        sys.exit("run_harnesses.py is not there: --script or TOKAMAK_CORPUS says where it is")
    store = Store(arguments.out / "harnesses.json", arguments.rerun)
    pool = Pool(arguments, store.add)
    try:
        groups = listed(pool, {"harnesses": ([sys.executable, WORKER, "list-harnesses", script],
                                             environment("cpu", arguments))}).get("harnesses", {})  # fmt: skip
        names = sorted(name for name in groups if arguments.filter in name)[:: arguments.every]
        shards = []
        for x64 in arguments.x64.split(","):
            command = [sys.executable, WORKER, "harnesses", script, "{ids}", "{events}", arguments.platform, x64]
            env = environment(f"{arguments.platform},cpu", arguments)
            where = f"x64={x64}"
            shards += [Shard(where, ids, command, env) for ids in cut(store.missing(where, names), arguments.shard)]
        pool.run(shards)
        store.write(cases=len(names), groups={name: groups[name] for name in names})
    finally:
        shutil.rmtree(pool.folder, ignore_errors=True)
    return report_harnesses(json.loads(store.path.read_text()))


def report_harnesses(data):
    full, shares, total = True, [], collections.Counter()
    for where, results in data["results"].items():
        groups = collections.defaultdict(lambda: [0, 0])
        for name, result in results.items():
            if result["outcome"] in ("skipped", "no_reference"):
                continue
            group = groups[data.get("groups", {}).get(name) or result.get("group")]
            group[0] += result["outcome"] == "passed"
            group[1] += 1
        counts = collections.Counter(result["outcome"] for result in results.values())
        average = sum(passed / count for passed, count in groups.values()) / max(1, len(groups))
        not_run = data.get("cases", len(results)) - len(results)
        print(f"harnesses {where}: {dict(counts)}, {not_run} not run; average over {len(groups)} primitives {100 * average:.2f} %")
        for group, (passed, count) in sorted(groups.items()):
            if passed < count:
                print(f"  {group}: {passed}/{count}")
        for name, result in sorted(results.items()):
            if result["outcome"] in MISSES:
                print(f"  {result['outcome']}  {name[:200]}: {result['error']}")
        full = full and average >= 0.99 and not_run == 0
        shares.append(f"{where}: {counts['passed']} of {sum(count for _, count in groups.values())}, {100 * average:.2f} % over primitives")
        total += counts
    print("figure: " + "; ".join(shares))
    missed = sum(total[outcome] for outcome in MISSES)
    print(f"tally: {total['passed']} passed, {missed} failed, {sum(total.values()) - total['passed'] - missed} skipped")
    return 0 if full else 1


# ---- JAX's tests


def run_tests(arguments):
    folder = arguments.folder.resolve()
    folder = folder / "tests" if (folder / "tests").is_dir() else folder
    files = arguments.only.split(",") if arguments.only else FILES
    store = Store(arguments.out / "tests.json", arguments.rerun)
    pool = Pool(arguments, store.add)
    more = {"JAX_NUM_GENERATED_CASES": str(arguments.cases)}
    platforms = {"cpu": environment("cpu", arguments, **more), "tokamak": environment(arguments.platforms, arguments, **more)}
    try:
        found = listed(pool, {name: ([sys.executable, WORKER, "list-tests", folder / f"{name}.py"], platforms["cpu"])
                              for name in files})  # fmt: skip
        # Slower ones first; the peer may be limited to our misses.
        for where in ("tokamak", "cpu"):
            shards = []
            for name, ids in found.items():
                ids = [one for one in ids if arguments.filter in one][:: arguments.every]
                if where == "cpu" and arguments.peer == "misses":
                    ids = [one for one in ids if store.results["tokamak"].get(one, {}).get("outcome") in MISSES]
                command = [sys.executable, WORKER, "tests", folder / f"{name}.py", "{ids}", "{events}"]
                shards += [Shard(where, part, command, platforms[where])
                           for part in cut(store.missing(where, ids), arguments.shard)]  # fmt: skip
            pool.run(shards)
        store.write(cases={name: len(ids) for name, ids in found.items()}, unlisted=[name for name in files if name not in found])
    finally:
        shutil.rmtree(pool.folder, ignore_errors=True)
    return report_tests(json.loads(store.path.read_text()))


def report_tests(data):
    cpu, here = data["results"].get("cpu", {}), data["results"].get("tokamak", {})
    # Cases that were not run on the peer, since they passed here (--peer misses).
    cpu = {**{name: result for name, result in here.items() if result["outcome"] == "passed"}, **cpu}
    files = collections.defaultdict(lambda: [0, 0, 0])  # passed on the CPU, of these passed here, of these not run here
    for name, result in cpu.items():
        if result["outcome"] != "passed":
            continue
        row = files[name.split("::")[0]]
        outcome = here.get(name, {}).get("outcome")
        row[0] += 1
        row[1] += outcome == "passed"
        row[2] += outcome is None
    for name, result in sorted(here.items()):
        if result["outcome"] != "passed" and cpu.get(name, {}).get("outcome") == "passed":
            print(f"{result['outcome']}  {name}: {result['error']}")
    for name, (passed, of_these, not_run) in sorted(files.items()):
        share = 100 * of_these / max(1, passed - not_run)
        print(f"{name:28} {of_these:5} of {passed - not_run:5} that pass on JAX's CPU  {share:6.2f} %" + (f"  ({not_run} not run)" if not_run else ""))
    passed, of_these, not_run = (sum(row[i] for row in files.values()) for i in range(3))
    share = 100 * of_these / max(1, passed - not_run)
    on_cpu = collections.Counter(result["outcome"] for result in cpu.values())
    print(f"JAX's tests: {of_these} of {passed - not_run}, {share:.2f} %; {not_run} not run; JAX's CPU: {dict(on_cpu)}")
    for name in data.get("unlisted", []):
        print(f"{name}: could not be listed")
    return 0 if share >= 98 and not not_run and not data.get("unlisted") else 1


def report(arguments):
    code = 0
    for name, show in (("harnesses", report_harnesses), ("tests", report_tests)):
        path = arguments.folder / f"{name}.json"
        if path.exists():
            code = max(code, show(json.loads(path.read_text())))
    return code


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--out", type=Path, required=True, help="folder for the results")
    common.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    common.add_argument("--case-seconds", type=float, default=120, help="a case that takes longer hangs (120)")
    common.add_argument("--seconds", type=float, help="end by then")
    common.add_argument("--every", type=int, default=1, help="one case in N")
    common.add_argument("--filter", default="", help="cases whose name holds this text")
    common.add_argument("--package", type=Path, help="where the tokamak package is (python/ of this clone)")
    common.add_argument("--rerun", action="store_true", help="also what has results")
    some = commands.add_parser("harnesses", parents=[common])
    some.add_argument("--script", help="run_harnesses.py, or its folder ($TOKAMAK_CORPUS)")
    some.add_argument("--x64", default="0,1")
    some.add_argument("--platform", default="tokamak")
    some.add_argument("--shard", type=int, default=60, help="cases in a process (60)")
    some.set_defaults(call=run_harnesses)
    some = commands.add_parser("tests", parents=[common])
    some.add_argument("folder", type=Path, help="JAX's tests, at the tag of the installed version")
    some.add_argument("--only", help="files, without .py: a,b")
    some.add_argument("--cases", type=int, default=1, help="JAX_NUM_GENERATED_CASES (1)")
    some.add_argument("--platforms", default="tokamak,cpu", help="JAX_PLATFORMS of the runs on Tokamak")
    some.add_argument("--shard", type=int, default=25, help="cases in a process (25)")
    some.add_argument("--peer", choices=("all", "misses"), default="all", help="what JAX's CPU runs: misses, only what missed here")
    some.set_defaults(call=run_tests)
    some = commands.add_parser("report")
    some.add_argument("folder", type=Path)
    some.set_defaults(call=report)
    arguments = parser.parse_args()
    return arguments.call(arguments)


if __name__ == "__main__":
    sys.exit(main())
