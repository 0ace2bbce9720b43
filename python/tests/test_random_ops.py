"""Random numbers are ops: after the passes a program has one threefry op per draw, and no expanded rotations."""

import importlib.util
import pathlib

import pytest

pytest.importorskip("jax")

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKAMAK = ROOT / "build/bin/tokamak"

_spec = importlib.util.spec_from_file_location("count_random", ROOT / "tools/count_random.py")
count_random = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(count_random)


@pytest.fixture(scope="module")
def programs():
    if not TOKAMAK.exists():
        pytest.skip("build/bin/tokamak is not built")
    return count_random.programs()


@pytest.mark.parametrize("lowering", count_random.LOWERINGS)
@pytest.mark.parametrize("partitionable", [True, False])
@pytest.mark.parametrize("name", [
    "uniform", "normal", "bernoulli", "randint", "permutation", "categorical", "split", "fold_in", "bits of 8",
    "bits of 16", "bits of 64", "one number", "dropout", "gradient of dropout", "vmap of keys", "vmap of split",
    "vmap of fold_in", "scan of keys", "scan of split", "flax training step", "cartpole_naive (bench)",
    "cartpole_scan (bench)",
])  # fmt: skip
def test_draws(programs, name, partitionable, lowering):
    if name not in programs:
        pytest.skip("flax is not here")
    fn, args = programs[name]
    row = count_random.count(TOKAMAK, name, fn, args, lowering, partitionable)
    assert (row["ops"], row["left"]) == (row["drawn"], 0)


@pytest.mark.parametrize("lowering", ["cpu", "written out"])
@pytest.mark.parametrize("name", ["normal", "bits of 64", "vmap of fold_in", "scan of split", "permutation"])
def test_values(programs, name, lowering):
    """The interpreter computes the same bits before and after; otherwise count() fails."""
    fn, args = programs[name]
    count_random.count(TOKAMAK, name, fn, args, lowering, True, values=True)
