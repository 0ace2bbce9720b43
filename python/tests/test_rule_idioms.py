"""Each idiom of tools/rule_idioms.py triggers its rule."""

import json
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from rule_idioms import IDIOMS

COUNTS = np.arange(61)
VARIABLES = {
    **{name: np.ones(61, np.float32) for name in "xyz"},
    "w": np.ones((8, 4), np.float32),
    "h": jnp.ones(61, jnp.bfloat16),
    "c": np.ones(61, np.complex64),
    **{name: COUNTS.astype(np.int32) for name in "ij"},
    "k": np.int32(3),
    "u": COUNTS.astype(np.uint32),
    "b": COUNTS.astype(np.uint8),
    **{name: COUNTS > 3 for name in "pq"},
}


def lowered(idiom):
    if idiom.startswith("%r"):
        return f"func.func @main(%x: tensor<61xf32>) -> tensor<61xf32> {{\n{idiom}\nreturn %r : tensor<61xf32>\n}}\n"

    def program(variables):
        return eval(idiom, {"jax": jax, "jnp": jnp, "lax": jax.lax, **variables})

    return jax.jit(program).lower(VARIABLES).as_text()


@pytest.mark.parametrize("rule", IDIOMS)
def test_idiom_triggers_its_rule(rule):
    command = [ROOT / "build/bin/tokamak", "opt", "-", "--passes", "default", "--json"]
    done = subprocess.run(command, input=lowered(IDIOMS[rule]), text=True, capture_output=True, check=True)
    decisions = [each["rule"] for program in json.loads(done.stdout)["programs"] for each in program["decisions"]]
    assert rule in decisions
