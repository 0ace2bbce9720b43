"""The examples, in a short form: the same losses and states as on JAX's CPU backend."""

import json
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT, environment


def run(example, platform, *args):
    command = [sys.executable, str(ROOT / "examples" / example), "--json", *map(str, args)]
    done = subprocess.run(command, env=environment(JAX_PLATFORMS=platform), text=True, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("example", ["train_cnn.py", "train_transformer.py"])
def test_training_has_the_same_loss_curve(example):
    args = ("--steps", 6, "--batch", 8)
    (ours,), (theirs,) = run(example, "tokamak", *args), run(example, "cpu", *args)
    assert (ours["platform"], theirs["platform"]) == ("tokamak", "cpu")
    np.testing.assert_allclose(ours["losses"], theirs["losses"], rtol=2e-3)
    assert ours["losses"][-1] < ours["losses"][0]


def test_cartpole_has_the_same_states():
    args = ("--poles", 8, "--steps", 20, "--repeats", 1)
    for ours, theirs in zip(run("cartpole.py", "tokamak", *args), run("cartpole.py", "cpu", *args), strict=True):
        assert (ours["program"], ours["falls"]) == (theirs["program"], theirs["falls"])
        np.testing.assert_allclose(ours["state"], theirs["state"], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("example", ["train_cnn.py", "train_transformer.py"])
def test_training_learns(example):
    (ours,), (theirs,) = run(example, "tokamak"), run(example, "cpu")
    assert ours["right"] > 0.9 and theirs["right"] > 0.9
    half = len(ours["losses"]) // 4
    np.testing.assert_allclose(ours["losses"][:half], theirs["losses"][:half], rtol=5e-2)
