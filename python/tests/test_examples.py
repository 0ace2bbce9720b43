"""Short runs of the examples: the same losses and states as on JAX's CPU backend."""

import json

import numpy as np
import pytest
from conftest import ROOT, script


def run(example, platform, *args):
    done = script(ROOT / "examples" / example, "--json", *args, timeout=600, JAX_PLATFORMS=platform)
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


@pytest.mark.slow  # XLA is slow to compile the unrolled one
def test_the_ladder_of_cartpole_is_drawn(tmp_path):
    out = tmp_path / "ladder.svg"
    done = script(ROOT / "examples/cartpole/ladder.py", "--sizes", "8,16", "--repetitions", 1, "--out", out, timeout=600,
                  JAX_PLATFORMS="tokamak,cpu")  # fmt: skip
    assert done.returncode == 0, done.stderr
    for side in ("XLA", "Tokamak"):
        for way in ("plain", "drawn before", "nothing stacked", "unrolled by 10", "a call a step"):
            assert f"{side}, {way}" in out.read_text()
    assert out.read_text().count("<circle") == 20


@pytest.mark.slow
def test_the_paper_is_measured_and_written(tmp_path):
    """A short part of bench/paper on the CPU: every column has a figure or a reason why it is missing."""
    done = script(ROOT / "bench/paper", "--device", "cpu", "--quick", "--only", "E2,E6,E7", "--n", 16, "--out", tmp_path, timeout=600)
    assert done.returncode == 0, done.stderr
    explanation = json.loads((tmp_path / "paper_cpu.json").read_text())
    measured = {(r["program"], r["side"]) for r in explanation["records"] if r.get("ms", 0) > 0}
    for side in ("xla", "rules", "tokamak"):
        assert ("cartpole_scan:16", side) in measured, done.stderr
    assert {r["side"]: r["compiled_kernels"] for r in explanation["records"] if r["experiment"] == "E2"} == {
        "rules": 6, "rules, lifted": 6, "rules, not simplified": 10, "rules, not simplified, lifted": 8}
    page = (tmp_path / "paper.md").read_text()
    for part in ("### E0", "### E2", "### E6", "### E7", "no GPU on this machine", "paper_ladder_cpu.svg"):
        assert part in page
    assert (tmp_path / "paper_headline.svg").read_text().startswith("<svg")


def test_no_page_of_missing_rows_is_written(tmp_path):
    """A library that cannot be opened is an error, and no page is written."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libtokamak.so").write_text("no library")
    done = script(ROOT / "bench/paper", "--device", "cpu", "--quick", "--only", "E8", "--n", 16, "--limit", 20,
                  "--build", tmp_path, "--out", tmp_path / "out", timeout=300)  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "no page is written" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("example", ["train_cnn.py", "train_transformer.py"])
def test_training_learns(example):
    (ours,), (theirs,) = run(example, "tokamak"), run(example, "cpu")
    assert ours["right"] > 0.9 and theirs["right"] > 0.9
    half = len(ours["losses"]) // 4
    np.testing.assert_allclose(ours["losses"][:half], theirs["losses"][:half], rtol=5e-2)


def test_a_rule_of_ones_own():
    done = script(ROOT / "examples/user_rule.py")
    assert done.returncode == 0 and done.stdout.startswith("accepted: "), done.stdout + done.stderr
