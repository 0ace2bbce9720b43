#!/usr/bin/env python3
"""Writes a training step of BERT (bench/workloads.py) as StableHLO with source lines, for tests/browser_test.py; nothing runs:

    browser_bert.py LAYERS FILE"""
import sys
from pathlib import Path

try:
    import jax
except ImportError:
    print("skipped: no JAX here (scripts/bootstrap makes a .venv that has it)")
    sys.exit(77)

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))
import workloads  # noqa: E402  the path comes first


def main(layers, file):
    cfg = dict(workloads.BERT, layers=layers, hidden=256, heads=4, mlp=1024, vocab=1024)
    step = workloads.bert_train(0.1, workloads.T3, cfg=cfg)("b8_s128")
    with jax.named_scope("bert"):
        text = jax.jit(step.fn).lower(*step.args).as_text(debug_info=True)
    Path(file).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    main(int(sys.argv[1]), sys.argv[2])
