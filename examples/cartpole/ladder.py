"""CartPole in five formulations, at many sizes, on XLA and on Tokamak: a plot of how much the formulation matters.

    PYTHONPATH=python python examples/cartpole/ladder.py              # JAX's CPU and Tokamak's; with a GPU: TOKAMAK_DEVICE=cuda
    PYTHONPATH=python python examples/cartpole/ladder.py --quick --out /tmp/ladder.svg

The five are the ladder of arXiv 2301.13062 and the step called from Python: plain (threefry in the step, stacked state, lax.scan), the
same with precomputed random numbers, without the stacked state, and unrolled by ten. Both platforms run interleaved in one process; a time
is the minimum of several. Handwritten CUDA is measured if there are a GPU, nvcc and --peers (bench/peers)."""

import argparse
import os
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
GPU = os.environ.get("TOKAMAK_DEVICE") == "cuda"
os.environ.setdefault("JAX_PLATFORMS", "tokamak,cuda,cpu" if GPU else "tokamak,cpu")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import paper_peers
import svg

STEPS = 1000
BYTES_OF_DRAWS = 17 * STEPS  # bytes per simulation
SIZES = (16, 64, 256, 2048, 16384, 131072, 1048576)


def physics(x, speed, angle, spin, goes_right):
    force = jnp.where(goes_right, 10.0, -10.0)
    sin, cos = jnp.sin(angle), jnp.cos(angle)
    push = (force + 0.05 * spin**2 * sin) / 1.1
    turn = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
    pull = push - 0.05 * turn * cos / 1.1
    return x + 0.02 * speed, speed + 0.02 * pull, angle + 0.02 * spin, spin + 0.02 * turn


def fell(x, angle):
    return (jnp.abs(x) > 2.4) | (jnp.abs(angle) > 0.2095)


def draw(key, n):
    """The random values of one step: actions, initial states for resets, the next key."""
    action, start, key = jax.random.split(jax.random.wrap_key_data(key), 3)
    fresh = jax.random.uniform(start, (4, n), minval=-0.05, maxval=0.05)
    return jax.random.bernoulli(action, 0.5, (n,)), fresh, jax.random.key_data(key)


def stacked(state, goes_right, fresh):
    state = jnp.stack(physics(*state, goes_right))
    return jnp.where(fell(state[0], state[2]), fresh, state)


def apart(state, goes_right, fresh):
    state = physics(*state, goes_right)
    down = fell(state[0], state[2])
    return tuple(jnp.where(down, f, s) for f, s in zip(fresh, state))


def plain(state, key):
    def step(carry, _):
        goes_right, fresh, key = draw(carry[1], state.shape[1])
        return (stacked(carry[0], goes_right, fresh), key), None

    return jax.lax.scan(step, (state, key), None, length=STEPS)[0]


def drawn_before(state, draws):
    return jax.lax.scan(lambda s, d: (stacked(s, *d), None), state, draws)[0]


def nothing_stacked(state, draws, unroll=1):
    return jax.lax.scan(lambda s, d: (apart(s, *d), None), state, draws, unroll=unroll)[0]


def unrolled(state, draws):
    return nothing_stacked(state, draws, 10)


def one_step(state, key):
    goes_right, fresh, key = draw(key, state.shape[1])
    return stacked(state, goes_right, fresh), key


def all_draws(key, n):
    return jax.lax.scan(lambda k, _: (lambda a, f, k: (k, (a, f)))(*draw(k, n)), key, None, length=STEPS)[1]


WAYS = {"plain": plain, "drawn before": drawn_before, "nothing stacked": nothing_stacked, "unrolled by 10": unrolled, "a call a step": one_step}
APART = ("nothing stacked", "unrolled by 10")
DRAWN = ("drawn before", *APART)


class Program:
    """One formulation on one platform."""

    def __init__(self, platform, way, n, draws):
        device = jax.devices(platform)[0]
        state, key = jnp.zeros((4, n)), jnp.array([0, 42], jnp.uint32)
        if way in APART:
            state, draws = tuple(state), draws and (draws[0], tuple(draws[1][:, i] for i in range(4)))
        self.args = jax.device_put((state, draws if way in DRAWN else key), device)
        self.calls = STEPS if way == "a call a step" else 1
        begin = time.perf_counter()
        self.run = jax.jit(WAYS[way]).lower(*self.args).compile()
        self.compile_s = time.perf_counter() - begin
        self.best = float("inf")

    def turn(self):
        begin, args = time.perf_counter(), self.args
        for _ in range(self.calls):
            args = self.run(*args) if self.calls > 1 else self.run(*self.args)
        jax.block_until_ready(args)
        self.best = min(self.best, time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three sizes")
    parser.add_argument("--sizes", help="numbers of simulations, commas between them")
    parser.add_argument("--most-bytes", type=float, default=3e9 if GPU else 3e8, help="of random numbers drawn before")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--peers", type=pathlib.Path, default=ROOT / "bench/peers")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/cartpole_ladder.svg")
    args = parser.parse_args()
    sizes = [int(n) for n in args.sizes.split(",")] if args.sizes else (16, 256, 2048) if args.quick else SIZES if GPU else SIZES[:5]
    sides = {"XLA": "cuda" if GPU else "cpu", "Tokamak": "tokamak"}
    drawing = jax.devices(sides["XLA"])[0]
    lines, folder = {}, tempfile.TemporaryDirectory()
    hand = paper_peers.HandWritten(args.peers, folder.name) if GPU else None
    print(f"ms for {STEPS:,} steps (s to compile)\n{'way':16} {'N':>9}  " + "  ".join(f"{side:>18}" for side in sides))
    for n in sizes:
        with jax.default_device(drawing):
            fits = n * BYTES_OF_DRAWS <= args.most_bytes
            draws = jax.jit(all_draws, static_argnums=1)(jnp.array([0, 42], jnp.uint32), n) if fits else None
        for way in WAYS:
            if draws is None and way in DRAWN:
                print(f"{way:16} {n:9,}  more than {args.most_bytes:.0e} bytes of random numbers")
                continue
            programs = {side: Program(platform, way, n, draws) for side, platform in sides.items()}
            for _ in range(args.repetitions):
                for program in programs.values():
                    program.turn()
            for side, program in programs.items():
                lines.setdefault(f"{side}, {way}", []).append((n, program.best * 1e3))
            print(f"{way:16} {n:9,}  " + "  ".join(f"{p.best * 1e3:9.3f} ({p.compile_s:5.2f} s)" for p in programs.values()), flush=True)
    for row in hand.rows(60) if hand else []:
        if "ms" not in row:
            print(f"{row['peer']}: {row['why']}")
        elif "JAX's own draws, keys in each" in row["peer"] or row["peer"].endswith("no draws"):
            lines.setdefault(row["peer"], []).append((row["n"], row["ms"]))
    kinds = ", ".join(dict.fromkeys(jax.devices(p)[0].device_kind for p in sides.values()))
    looks = {f"{side}, {way}": (color, side == "XLA") for side in sides for color, way in zip(svg.SERIES, WAYS)}
    looks |= {name: (color, False) for color, name in zip((svg.INK, svg.BY_HAND), [name for name in lines if name not in looks])}
    plot = svg.lines(f"CartPole written in {len(WAYS)} ways", f"Wall time of {STEPS:,} steps. Dashed: XLA. Solid: Tokamak.", [("milliseconds (log scale)", lines)],
                     "simulations (log scale)", [f"Measured on {kinds}, with JAX {jax.__version__}."], looks, height=560)  # fmt: skip
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(plot)
    print(args.out)


if __name__ == "__main__":
    main()
