"""Workloads: CartPole (gym physics, Euler steps), as in the paper's ladder of rewritings by hand, with a policy network, and unrolled."""
import math, os
from concurrent.futures import ThreadPoolExecutor

import jax, jax.numpy as jnp
import numpy as np
from jax import lax
from workload_registry import F32, MORE, RBG, REG, T3, W, key_raw, reg, rnd, unwrap, wrap

G, MC, MP, LEN, FM, TAU = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
TM, PML = MC + MP, MP * LEN
TH, XT = 12 * 2 * math.pi / 360, 2.4

def cp_init(n):
    """same integer hash in JAX, torch and CUDA: u in [-0.05, 0.05)"""
    i = np.arange(n, dtype=np.uint64)
    out = []
    for k in range(4):
        h = ((i * 4 + k) * 2654435761 + 12345) & 0xFFFFFFFF
        h ^= h >> 15
        h = (h * 2246822519) & 0xFFFFFFFF
        h ^= h >> 13
        out.append(((h >> 8).astype(np.float32) / np.float32(1 << 24)) * np.float32(0.1) - np.float32(0.05))
    return np.stack(out)                     # (4, N) float32

def cp_phys(x, xd, th, thd, act):
    force = jnp.where(act, FM, -FM)
    ct, st = jnp.cos(th), jnp.sin(th)
    tmp = (force + PML * thd * thd * st) / TM
    tha = (G * st - ct * tmp) / (LEN * (4.0 / 3.0 - MP * ct * ct / TM))
    xa = tmp - PML * tha * ct / TM
    return x + TAU * xd, xd + TAU * xa, th + TAU * thd, thd + TAU * tha

def cp_done(x, th):
    return (x < -XT) | (x > XT) | (th < -TH) | (th > TH)

def cp_move(concat, state, ret, eps, act, fresh):
    """one step with the action and the reset state given; fresh is (4,N) or a tuple of 4 (N,)"""
    x, xd, th, thd = cp_phys(state[0], state[1], state[2], state[3], act)
    if concat:
        obs = jnp.concatenate([x[None], xd[None], th[None], thd[None]], axis=0)   # several users below
        done = cp_done(obs[0], obs[2])
        state = jnp.where(done[None, :], fresh, obs)
    else:
        done = cp_done(x, th)
        state = tuple(jnp.where(done, f, s) for f, s in zip((fresh[0], fresh[1], fresh[2], fresh[3]), (x, xd, th, thd)))
    ret = jnp.where(done, 0.0, ret + 1.0)
    eps = eps + done.astype(jnp.int32)
    return state, ret, eps

def cp_step(rng, concat, n):
    """-> step(state, ret, eps, key_or_reset): state is (4,N) if concat else a tuple of 4 (N,)"""
    def step(state, ret, eps, key):
        if rng:
            ks = jax.random.split(wrap(key, rng), 3)
            act = jax.random.bernoulli(ks[0], 0.5, (n,))
            fresh = jax.random.uniform(ks[1], (4, n), F32, -0.05, 0.05)
            nkey = unwrap(ks[2])
        else:
            fresh, nkey = key, key           # `key` holds the fixed (4,N) reset states
            act = (state[2] > 0)
        return (*cp_move(concat, state, ret, eps, act, fresh), nkey)
    return step

CP_N = [16, 64, 256, 2048, 16384, 131072, 1048576]
CP_STEPS = 1000

def _cp(rng, concat, loop, unroll=1, steps=CP_STEPS):
    def build(size):
        n = int(size)
        step = cp_step(rng, concat, n)
        init = cp_init(n)
        state = init if concat else tuple(init[i].copy() for i in range(4))
        key = key_raw(42, rng) if rng else init.copy()
        args = (state, np.zeros(n, np.float32), np.zeros(n, np.int32), key)
        carry = 4 if rng else 3
        if loop == "py":
            if rng:
                return W(step, args, carry=4, calls=steps, items=float(n), item_name="sim_steps")
            fn = lambda s, r, e, k: step(s, r, e, k)[:3]      # reset table stays an argument
            return W(fn, args, carry=3, calls=steps, items=float(n), item_name="sim_steps")
        if loop == "fori":
            def fn(state, ret, eps, key):
                c = lax.fori_loop(0, steps, lambda i, c: step(*c), (state, ret, eps, key), unroll=unroll)
                return c if rng else c[:3]
        elif loop == "pyunroll":      # all steps traced out: one straight-line program
            def fn(state, ret, eps, key):
                c = (state, ret, eps, key)
                for _ in range(steps): c = step(*c)
                return c if rng else c[:3]
        else:
            def fn(state, ret, eps, key):
                if rng:
                    c, _ = lax.scan(lambda c, _: (step(*c), None), (state, ret, eps, key), None, length=steps, unroll=unroll)
                    return c
                # no rng: the reset table is a loop constant, not carried
                c, _ = lax.scan(lambda c, _: (step(*c, key)[:3], None), (state, ret, eps), None, length=steps, unroll=unroll)
                return c
        return W(fn, args, carry=carry, calls=0, items=float(n) * steps, item_name="sim_steps")
    return build

def threefry_np(k, c):
    """threefry2x32 of the counters (0, c) in numpy: what jax.random hashes (jax_threefry_partitionable)"""
    ks = (k[0], k[1], k[0] ^ k[1] ^ np.uint32(0x1BD11BDA))
    with np.errstate(over="ignore"):
        x0, x1, t = np.full_like(c, ks[0]), c + ks[1], np.empty_like(c)
        for i in range(5):
            for r in ((13, 15, 26, 6), (17, 29, 16, 24))[i % 2]:
                x0 += x1
                np.left_shift(x1, np.uint32(r), out=t)
                x1 >>= np.uint32(32 - r)
                x1 |= t
                x1 ^= x0
            x0 += ks[(i + 1) % 3]
            x1 += ks[(i + 2) % 3] + np.uint32(i + 1)
    return x0, x1

_DRAWS = {}
def cp_draws(n, steps=CP_STEPS):
    """the actions (steps,N) and reset states (steps,4,N) that cartpole_scan draws in its first call: 17 bytes per step and simulation.
    Drawn in numpy, so they do not depend on the compiler under test.  jax.random.uniform's u * 0.1 - 0.05 is rounded once here, as
    XLA contracts it to an fma; a compiler that rounds twice gets reset values off by up to 3.7e-9 in cartpole_scan, not in these."""
    if (n, steps) not in _DRAWS:
        _DRAWS.clear()                       # one N is kept: 2.2 GB at N = 131072
        c = np.arange(4 * n, dtype=np.uint32)
        key, ks = key_raw(42), []
        for _ in range(steps):
            ks.append(np.stack(threefry_np(key, c[:3]), -1))
            key = ks[-1][2]
        act, fresh = np.empty((steps, n), bool), np.empty((steps, 4, n), np.float32)
        def one(t):
            a, b = threefry_np(ks[t][0], c[:n])
            act[t] = (a ^ b) < np.uint32(1 << 31)                                    # bernoulli(0.5): uniform < 0.5
            a, b = threefry_np(ks[t][1], c)
            u = (((a ^ b) >> np.uint32(9)) | np.uint32(0x3F800000)).view(np.float32).astype(np.float64) - 1.0
            fresh[t] = (u * np.float64(np.float32(0.1)) - np.float64(np.float32(0.05))).reshape(4, n)    # exact in f64, one rounding
        if n < 8192:
            for t in range(steps): one(t)
        else:
            with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as ex: list(ex.map(one, range(steps)))
        act.flags.writeable = fresh.flags.writeable = False
        _DRAWS[n, steps] = act, fresh
    return _DRAWS[n, steps]

def _cp_pre(concat, unroll=1, steps=CP_STEPS):
    """cartpole_scan with the random numbers drawn outside and streamed in as scan xs: the same operations on the same numbers, so bit-equal
    states op by op.  A compiler that contracts to fma differently in the two programs (XLA does) gives other last bits of the state.
    The difference grows within an episode (up to 1e-4 seen); returns and episode counts agreed on XLA's CPU at every N tried."""
    def build(size):
        n = int(size)
        assert n <= CP_PRE_N[-1], f"prerng: {steps * n * 17 / 1e9:.1f} GB of random numbers"
        act, fresh = cp_draws(n, steps)
        init = cp_init(n)
        state = init if concat else tuple(init[i].copy() for i in range(4))
        xs = (act, fresh if concat else tuple(np.ascontiguousarray(fresh[:, i]) for i in range(4)))
        def fn(state, ret, eps, xs):
            return lax.scan(lambda c, x: (cp_move(concat, *c, *x), None), (state, ret, eps), xs, length=steps, unroll=unroll)[0]
        return W(fn, (state, np.zeros(n, np.float32), np.zeros(n, np.int32), xs), carry=3, items=float(n) * steps, item_name="sim_steps")
    return build

def _cp_rngcall(size):
    """cartpole_scan with threefry as a custom call (the paper's baseline): CUDA only, elsewhere the flag changes nothing"""
    w = _cp(T3, True, "scan")(size)
    w.config = {"jax_threefry_gpu_kernel_lowering": True}
    return w

CP_PRE_N = [n for n in CP_N if n <= 131072]
# The paper's ladder (arXiv 2301.13062): RNG as a custom call + concatenate -> random numbers precomputed and passed in -> no concatenate -> unroll 10.
# cartpole_scan is the first rung as today's XLA sees it (threefry inlined), cartpole_scan_rngcall as the paper had it.
REG["cartpole_scan"] = (_cp(T3, True, "scan"), [str(n) for n in CP_N], "cartpole")
REG["cartpole_scan_rngcall"] = (_cp_rngcall, [str(n) for n in CP_N], "cartpole")
for _nm, _b in {
    "cartpole_scan_prerng": _cp_pre(True),
    "cartpole_scan_prerng_noconcat": _cp_pre(False),
    "cartpole_best_prerng": _cp_pre(False, 10),
}.items():
    REG[_nm] = (_b, [str(n) for n in CP_PRE_N], "cartpole")
for _nm, _b in {
    # an extra, not in the paper's ladder: one jitted step per call
    "cartpole_naive": _cp(T3, True, "py"),
    "cartpole_norng": _cp(None, True, "py"),
    "cartpole_noconcat": _cp(T3, False, "py"),
    "cartpole_norng_noconcat": _cp(None, False, "py"),
    # further combinations ("norng": no draws at all, a fixed reset table and the action from the angle)
    "cartpole_scan_unroll10": _cp(T3, True, "scan", 10),
    "cartpole_best": _cp(None, False, "scan", 10),
    "cartpole_naive_rbg": _cp(RBG, True, "py"),
    "cartpole_scan_rbg": _cp(RBG, True, "scan"),
    "cartpole_scan_norng": _cp(None, True, "scan"),
    "cartpole_scan_noconcat": _cp(T3, False, "scan"),
    "cartpole_scan_norng_noconcat": _cp(None, False, "scan"),
    "cartpole_best_rng": _cp(T3, False, "scan", 10),
    "cartpole_best_rbg": _cp(RBG, False, "scan", 10),
    "cartpole_best_fori": _cp(None, False, "fori", 10),
}.items():
    REG[_nm] = (_b, [str(n) for n in CP_N], "cartpole")
for _u in (1, 2, 5, 10, 20, 50, 100):
    REG[f"cartpole_scan_prerng_noconcat_u{_u}"] = (_cp_pre(False, _u), ["2048"], "cartpole_unroll")
for _u in (1, 2, 5, 10, 20, 50, 100):
    REG[f"cartpole_scan_u{_u}"] = (_cp(T3, True, "scan", _u), ["2048"], "cartpole_unroll")
# where the GPU overtakes the CPU
_CROSS = [str(n) for n in (1, 8, 16, 32, 48, 64, 70, 96, 128, 256, 1024)]
MORE["crossover"] = {"cartpole_scan": _CROSS, "cartpole_best_prerng": _CROSS}

@reg("cartpole_policy", [256, 2048], "cartpole")      # an MLP policy 4-64-64-2 chooses the actions (sampled: gumbel)
def _(size):
    n, D = int(size), [4, 64, 64, 2]
    p = [(rnd((D[i], D[i + 1]), i) * np.float32(1 / math.sqrt(D[i])), rnd(D[i + 1], i + 3) * np.float32(0.1)) for i in range(3)]
    def fn(state, ret, eps, key, p):
        def step(c, _):
            state, ret, eps, key = c
            ks = jax.random.split(wrap(key, T3), 3)
            h = jnp.stack(state, -1)
            for i, (w, b) in enumerate(p):
                h = jnp.matmul(h, w, precision="highest") + b
                if i < 2: h = jnp.tanh(h)
            act = jax.random.categorical(ks[0], h, -1) == 1
            fresh = jax.random.uniform(ks[1], (4, n), F32, -0.05, 0.05)
            return (*cp_move(False, state, ret, eps, act, fresh), unwrap(ks[2])), None
        return lax.scan(step, (state, ret, eps, key), None, length=CP_STEPS)[0]
    init = cp_init(n)
    return W(fn, (tuple(init[i].copy() for i in range(4)), np.zeros(n, np.float32), np.zeros(n, np.int32), key_raw(42), p), carry=4,
             flops=2.0 * n * CP_STEPS * sum(D[i] * D[i + 1] for i in range(3)), items=float(n) * CP_STEPS, item_name="sim_steps")

REG["cartpole_unrolled100"] = (_cp(None, False, "pyunroll", steps=100), ["2048"], "compile")
REG["cartpole_unrolled25"] = (_cp(None, False, "pyunroll", steps=25), ["2048"], "compile")
REG["cartpole_unrolled50"] = (_cp(None, False, "pyunroll", steps=50), ["2048"], "compile")
REG["cartpole_unrolled20_rng"] = (_cp(T3, True, "pyunroll", steps=20), ["2048"], "compile")
