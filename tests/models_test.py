#!/usr/bin/env python3
"""Models whose numbers must agree with other implementations of the same mathematics, through the JAX plugin.

- gradients: every gradient of a training step of a small BERT, with dropout masks that are given, against the same step in float64 on JAX's CPU
  backend. The error of bf16 may not exceed twice that of XLA's, nor a bound of the type.
- losses: a small decoder with dropout, trained for some steps from several seeds, against XLA with the same random numbers. The losses may not
  differ by more than XLA's own do between bf16 and f32, times NOISE.

    tests/models_test.py [gradients] [losses] [--all] [--device cuda] [--steps 200] [--seeds 3]

--device cuda runs Tokamak on an NVIDIA GPU, and compares losses with XLA on it; TOKAMAK_DEVICE=sim-cuda simulates one. Exit code 77: this Python
has no JAX.
"""
import argparse
import contextlib
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CUDA = "--device=cuda" in sys.argv or ("--device" in sys.argv and sys.argv[sys.argv.index("--device") + 1] == "cuda")
os.environ.setdefault("TOKAMAK_DEVICE", "cuda" if CUDA else "cpu")
os.environ.setdefault("JAX_PLATFORMS", "tokamak,cuda,cpu" if CUDA else "tokamak,cpu")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
for build in ("build", "build-gpu"):
    if (library := ROOT / build / "lib/libtokamak.so").exists():
        os.environ.setdefault("PJRT_NAMES_AND_LIBRARY_PATHS", f"tokamak:{library}")
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench")]
SKIPPED = 77
try:
    import jax
    import jax.numpy as jnp
    import numpy as np
except ImportError:
    print("skipped: this Python has no JAX")
    sys.exit(SKIPPED)
import bert_programs  # noqa: E402
import model_programs  # noqa: E402
import workloads  # noqa: E402

PEER = "cuda" if CUDA else "cpu"
# Relative errors of a gradient, in the norm of the parameter. bf16 has 8 significant bits; errors of the layers add up. f32 is TF32 on a GPU.
BOUND = {"bf16": 0.06, "f32": 1e-4 if os.environ["TOKAMAK_DEVICE"] == "cpu" else 0.01}
TIMES_XLA = 2.0  # our error over that of XLA's CPU backend in the same type, at most; a quarter of the bound is always allowed
BERT = dict(workloads.TINY, layers=2, vocab=97, maxpos=64)
BATCH, LENGTH = 3, 40
NOISE = 3.0  # our distance from XLA over that of its own types, at most
LEAST_NOISE = 0.002  # of a loss: what a last bit may cause
DECODER = dict(layers=2, width=64, vocab=61, length=32)
BATCHES = 8


@contextlib.contextmanager
def in_type(of):
    """The activations of BERT in another type, and all of their arithmetic if it is float64."""
    before = bert_programs.BF16, bert_programs.F32
    bert_programs.BF16 = of
    if of == jnp.float64:
        bert_programs.F32 = of
    try:
        yield
    finally:
        bert_programs.BF16, bert_programs.F32 = before


def bert_gradients(of, platform, rate):
    """(loss, gradients) as float64 arrays in numpy."""
    wide = of == jnp.float64
    with in_type(of), jax.enable_x64(wide), jax.default_device(jax.devices(platform)[0]):
        parameters = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64 if wide else jnp.float32), workloads.bert_params(BERT))
        ids, mask, labels = (jnp.asarray(x) for x in workloads.bert_batch(BATCH, LENGTH, BERT["vocab"]))
        masks = [jnp.asarray(x) for x in workloads.bert_masks(BATCH, LENGTH, BERT, rate)] if rate else None

        def step(p, ids, mask, labels, masks):
            return jax.value_and_grad(workloads.bert_loss)(p, ids, mask, labels, masks, BERT, rate, "eager")

        loss, gradients = jax.jit(step)(parameters, ids, mask, labels, masks)
        paths = jax.tree_util.tree_leaves_with_path(gradients)
        return float(loss), {jax.tree_util.keystr(path): np.asarray(x).astype(np.float64) for path, x in paths}


def errors(got, wanted):
    """{name: relative error}; a gradient that is tiny against all others is compared with the mean norm."""
    typical = np.mean([np.linalg.norm(x) / np.sqrt(x.size) for x in wanted.values()])
    return {name: np.linalg.norm(got[name] - x) / max(np.linalg.norm(x), 1e-3 * typical * np.sqrt(x.size)) for name, x in wanted.items()}


def gradients(options):
    """(number of comparisons, how many fail)"""
    failed = 0
    for rate in (0.0, 0.1) if options.all else (0.1,):
        loss, wanted = bert_gradients(jnp.float64, "cpu", rate)
        for name, of in (("bf16", jnp.bfloat16), ("f32", jnp.float32)):
            ours_loss, got = bert_gradients(of, "tokamak", rate)
            theirs_loss, peer = bert_gradients(of, "cpu", rate)
            ours, theirs = errors(got, wanted), errors(peer, wanted)
            bad = [n for n, error in ours.items() if not error <= min(BOUND[name], max(TIMES_XLA * theirs[n], BOUND[name] / 4))]
            bad += ["loss"] * (not abs(ours_loss - loss) <= BOUND[name] / 10 * abs(loss))
            failed += bool(bad)
            worst = max(ours, key=ours.get)
            print(f"{'FAILED' if bad else 'passed'} gradients of BERT, {name}, dropout {rate:g}: loss {ours_loss:.6f} (float64 {loss:.6f}, XLA {theirs_loss:.6f}); "
                  f"largest error {ours[worst]:.2e} in {worst} (XLA there {theirs[worst]:.2e}, at most {max(theirs.values()):.2e})", flush=True)  # fmt: skip
            for one in bad[:5]:
                print(f"    {one}: {ours.get(one, abs(ours_loss - loss)):.2e}, XLA {theirs.get(one, abs(theirs_loss - loss)):.2e}")
    return (2 if options.all else 1) * 2, failed


def trained(platform, of, seed, steps):
    """The losses of the steps."""
    w = workloads
    of_model = DECODER
    random = np.random.default_rng(seed)
    # Text that can be learned: each token follows from the one before, but for noise.
    follows = random.permutation(of_model["vocab"])
    tokens = np.empty((BATCHES, 4, of_model["length"] + 1), np.int32)
    tokens[..., 0] = random.integers(0, of_model["vocab"], tokens.shape[:2])
    for at in range(1, tokens.shape[2]):
        noise = random.integers(0, of_model["vocab"], tokens.shape[:2])
        tokens[..., at] = np.where(random.random(tokens.shape[:2]) < 0.1, noise, follows[tokens[..., at - 1]])
    params = model_programs.decoder_params(w, of_model["layers"], of_model["width"], of_model["vocab"], of_model["length"])
    params = jax.tree.map(lambda x: x + random.standard_normal(x.shape, dtype=np.float32) * np.float32(0.002), params)
    device = jax.devices(platform)[0]
    zeros = jax.tree.map(np.zeros_like, params)
    state = jax.device_put((params, zeros, jax.tree.map(np.copy, zeros), np.float32(0), w.key_raw(seed)), device)
    data = jax.device_put(list(tokens), device)
    step = jax.jit(model_programs.decoder_step(w, 0.1, dtype=of, head=32), donate_argnums=(0, 1, 2, 3, 4))
    losses = []
    for at in range(steps):
        *state, loss = step(*state, data[at % BATCHES])
        losses.append(loss)
    return np.asarray([float(x) for x in losses])


def smooth(losses, width=10):
    return np.convolve(losses, np.ones(width) / width, mode="valid") if len(losses) >= width else losses


def losses(options):
    """(1, whether it fails)"""
    rows = []
    for seed in range(options.seeds):
        xla, wide, ours = (smooth(trained(*run, seed, options.steps)) for run in ((PEER, jnp.bfloat16), (PEER, jnp.float32), ("tokamak", jnp.bfloat16)))
        rows.append((np.max(np.abs(ours - xla)), np.max(np.abs(wide - xla)), xla[0], xla[-1], ours[-1]))
        print(f"seed {seed}, {options.steps} steps: XLA's loss {xla[0]:.4f} to {xla[-1]:.4f}, Tokamak's to {ours[-1]:.4f}; largest difference {rows[-1][0]:.1e}, "
              f"XLA's own between bf16 and f32 {rows[-1][1]:.1e}", flush=True)  # fmt: skip
    noise = max(LEAST_NOISE, *(row[1] for row in rows))
    worst = max(row[0] for row in rows)
    good = worst <= NOISE * noise and np.isfinite(worst)
    learned = all(last < 0.9 * first for _, _, first, last, _ in rows) or options.steps < 150
    print(f"{'passed' if good and learned else 'FAILED'} losses of a decoder with dropout: largest difference {worst:.1e}, noise {noise:.1e}{'' if learned else '; it does not learn'}")
    return 1, int(not (good and learned))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="gradients, losses (default: both)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--all", action="store_true", help="gradients also without dropout")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    parts = {"gradients": gradients, "losses": losses}
    if unknown := set(options.parts) - parts.keys():
        parser.error(f"no such part: {', '.join(unknown)}")
    counts = [parts[name](options) for name in options.parts or parts]
    failed = sum(bad for _, bad in counts)
    print(f"tally: {sum(all_ for all_, _ in counts) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
