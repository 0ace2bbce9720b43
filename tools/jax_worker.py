#!/usr/bin/env python3
"""One process of tools/jax_tests.py: lists cases, or runs some of them and records the begin and end of each.

    jax_worker.py list-harnesses SCRIPT OUT.json
    jax_worker.py list-tests FILE_test.py OUT.json
    jax_worker.py harnesses SCRIPT IDS.json EVENTS.jsonl PLATFORM X64
    jax_worker.py tests FILE_test.py IDS.json EVENTS.jsonl

A line of EVENTS is {"begun": ID} or {"id": ID, "outcome": ..., "error": ..., "seconds": ...}, so that the reader knows what was
running when the process ended, however it ended. Tests are run by unittest: pytest is not required.
"""
import importlib.util
import json
import os
import runpy
import sys
import time
import traceback
import unittest


class Events:
    def __init__(self, path):
        self.file = open(path, "a")

    def write(self, **event):
        self.file.write(json.dumps(event) + "\n")
        self.file.flush()


def words(text, limit=400):
    return " ".join(str(text).split())[:limit]


# ---- JAX's harnesses


def harnesses():
    from jax._src.internal_test_util import test_harnesses

    return test_harnesses


def list_harnesses(_, out):
    groups = {harness.fullname: harness.group_name for harness in harnesses().all_harnesses}
    with open(out, "w") as file:
        json.dump(groups, file)


def run_harnesses(script, ids, events, platform, x64):
    """Runs run_harnesses.py over some harnesses: it keeps its own results, this adds which one is running."""
    wanted = set(json.load(open(ids)))
    log = Events(events)
    module = harnesses()
    module.all_harnesses = [harness for harness in module.all_harnesses if harness.fullname in wanted]
    make_arguments = module.Harness.dyn_args_maker

    def dyn_args_maker(self, rng):
        log.write(begun=self.fullname)
        return make_arguments(self, rng)

    module.Harness.dyn_args_maker = dyn_args_maker
    sys.argv = [script, "--platform", platform, "--x64", x64, "--out", events + ".results"]
    runpy.run_path(script, run_name="__main__")


# ---- JAX's tests


def load(path):
    """The test cases of a file, by id."""
    from jax._src import test_util

    test_util.device_under_test = lambda: "cpu"  # tests must expect a CPU's capabilities, whatever the platform's name
    name = os.path.splitext(os.path.basename(path))[0]
    sys.path.insert(0, os.path.dirname(path))
    sys.argv = [path]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return dict(cases(unittest.TestLoader().loadTestsFromModule(module), name))


def cases(suite, name):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from cases(test, name)
        else:
            yield f"{name}::{type(test).__name__}::{test._testMethodName}", test


def list_tests(path, out):
    with open(out, "w") as file:
        json.dump(list(load(path)), file)


class Result(unittest.TestResult):
    """Outcomes, worst first: a test fails if one of its subtests does."""

    ORDER = ("failed", "error", "passed", "skipped")

    def __init__(self, log, names):
        super().__init__()
        self.log, self.names = log, names

    def startTest(self, test):
        super().startTest(test)
        self.outcomes, self.since = [], time.time()
        self.log.write(begun=self.names[id(test)])

    def stopTest(self, test):
        super().stopTest(test)
        worst = min(self.outcomes or [("error", "no outcome")], key=lambda pair: self.ORDER.index(pair[0]))
        self.log.write(id=self.names[id(test)], outcome=worst[0], error=worst[1],
                       seconds=round(time.time() - self.since, 3))  # fmt: skip

    def note(self, outcome, error=None):
        text = words("".join(traceback.format_exception_only(error[0], error[1]))) if error else ""
        self.outcomes.append((outcome, text))

    def addSuccess(self, test):
        self.note("passed")

    def addExpectedFailure(self, test, error):
        self.note("passed")

    def addUnexpectedSuccess(self, test):
        self.outcomes.append(("failed", "was expected to fail"))

    def addSkip(self, test, reason):
        if id(test) in self.names:
            self.outcomes.append(("skipped", words(reason)))
        else:
            self.log.write(setup=f"skipped: {words(reason)}")

    def addFailure(self, test, error):
        self.note("failed", error)

    def addError(self, test, error):
        if id(test) in self.names:
            self.note("error", error)
        else:  # setUpClass or setUpModule: none of its tests is started
            self.log.write(setup=words("".join(traceback.format_exception_only(error[0], error[1]))))

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.note("failed", error)


def run_tests(path, ids, events):
    wanted = json.load(open(ids))
    found = load(path)
    chosen = [found[name] for name in wanted if name in found]
    names = {id(found[name]): name for name in wanted if name in found}
    log = Events(events)
    unittest.TestSuite(chosen).run(Result(log, names))
    log.file.close()
    os._exit(0)  # results are on disk; does not wait for what a test left behind (threads, devices)


if __name__ == "__main__":
    commands = {"list-harnesses": list_harnesses, "list-tests": list_tests, "harnesses": run_harnesses,
                "tests": run_tests}  # fmt: skip
    commands[sys.argv[1]](*sys.argv[2:])
