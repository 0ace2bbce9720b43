"""LLVM crashes or hangs on a kernel: JAX continues with correct values, and the process's crash handlers are unchanged."""

import signal

import pytest
from conftest import python

PROGRAM = """
import faulthandler
{before}
import jax, jax.numpy as jnp, numpy as np, tokamak
x = jnp.linspace(0.0, 1.0, 1000)
with tokamak.debug():
    print(np.asarray(jax.jit(lambda x: jnp.cumsum(jnp.sin(x) * 3)[-1])(x)).round(2))
print(jax.jit(lambda x: (x * 2).sum())(x))
{after}
print("alive")
"""


def run(fault, before="", after="", **changes):
    return python(PROGRAM.format(before=before, after=after), TOKAMAK_CHECK=fault, **changes)


@pytest.mark.parametrize(
    ("fault", "reason", "then"),
    [
        ("crash", "SIGSEGV", "compiled by another instruction selector"),
        ("abort:2", "SIGABRT", "compiled without optimization"),
        ("fatal:3", "llvm: planted", "interpreted"),
        ("endless", "0.5 s of processor time are used up", "compiled by another instruction selector"),
    ],
)
def test_the_process_goes_on(fault, reason, then):
    right = run("")
    assert right.returncode == 0, right.stderr
    assert "falls back" not in right.stderr
    done = run("codegen-" + fault, before="faulthandler.enable()")
    assert (done.returncode, done.stdout) == (0, right.stdout), done.stderr
    explanation = [line for line in done.stderr.splitlines() if "falls back" in line]
    assert explanation and all(reason in line and then in line for line in explanation), done.stderr
    assert "Fatal Python error" not in done.stderr


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("call", "name", "number"), [("_sigsegv()", "Segmentation fault", signal.SIGSEGV), ("_sigabrt()", "Aborted", signal.SIGABRT)])
def test_faulthandler_still_works(when, call, name, number):
    enable = "faulthandler.enable()\n"
    parts = {"before": enable, "after": ""} if when == "before" else {"before": "", "after": enable}
    parts["after"] += "faulthandler." + call
    done = run("codegen-crash", **parts)
    assert done.returncode == -number, done.stderr
    assert "Fatal Python error: " + name in done.stderr
    assert "Current thread" in done.stderr
    assert "alive" not in done.stdout


def test_a_crash_without_handlers_ends_the_process():
    done = run("codegen-crash", after="import ctypes\nctypes.string_at(0)")
    assert done.returncode == -signal.SIGSEGV
