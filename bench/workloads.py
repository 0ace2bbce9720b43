"""Benchmark workloads in plain JAX (no platform-specific code).

    make(name, size) -> (fn, args)          what a compiler under test needs
    workload(name, size) -> W               the same plus metadata (ideal bytes, flops, carry ...)
    names(group) / sizes(name[, group])     enumeration

`size` is always a string token ("16777216", "65536x1024", "b16_s512"); ints are accepted.
`fn` is NOT jitted.  If W.carry == k the first k outputs are fed back as the first k arguments
of the next call (and those arguments are donated by the runner).  If W.calls is set, one timed
run is exactly that many calls (python loop of dispatches, as in the paper's naive CartPole).
Inputs are made with numpy from fixed seeds: nothing here depends on the compiler under test.
Keys are passed as raw uint32 arrays (typed key arrays would leave jit's C++ fast path).
W.config names jax.config flags that must hold while fn is traced, lowered AND called (workload.load does it).
"""
import dataclasses, math, os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
import numpy as np, ml_dtypes
import jax, jax.numpy as jnp
from jax import lax

F32, BF16 = jnp.float32, jnp.bfloat16
REG = {}
MORE = {}       # groups that measure workloads of other groups at sizes of their own: group -> {name: sizes}

@dataclasses.dataclass
class W:
    fn: object
    args: tuple
    bytes: float = 0.0      # ideal: every input read once + every output written once
    flops: float = 0.0      # algorithmic flops (0: bandwidth metric only)
    carry: int = 0          # leading args replaced by leading outputs
    calls: int = 0          # >0: a timed run is this many calls
    items: float = 0.0      # e.g. simulation steps per call
    item_name: str = ""
    platform_note: str = ""
    config: dict = dataclasses.field(default_factory=dict)      # jax.config flags; flags that this JAX does not have are left out
    peer: object = None     # the same function as XLA's GPU backend runs it fastest, where that needs other source (cuDNN's attention)
    name: str = ""
    size: str = ""

def reg(name, sizes, group="micro"):
    def d(f):
        REG[name] = (f, [str(s) for s in sizes], group)
        return f
    return d

def names(group=None):
    return [n for n, (_, _, g) in REG.items() if group is None or g == group or n in MORE.get(group, ())]

def sizes(name, group=None):
    return MORE.get(group, {}).get(name) or REG[name][1]

def group_of(name):
    return REG[name][2]

def workload(name, size):
    f, ss, _ = REG[name]
    w = f(str(size))
    w.name, w.size = name, str(size)
    w.args = jax.tree.map(jnp.asarray, w.args)
    return w                               # w.bytes stays 0 where it is derived: see ideal_bytes (kept out: it traces fn)

def make(name, size):
    w = workload(name, size)
    return w.fn, w.args

def nbytes(t):
    return float(sum(np.prod(a.shape, dtype=np.float64) * jnp.dtype(a.dtype).itemsize for a in jax.tree.leaves(t)))

def ideal_bytes(args, outs):
    """inputs read once + outputs written once (anything with shape and dtype)"""
    return nbytes(args) + nbytes(outs)

# ---------------------------------------------------------------- data
_POOL = {}
def rnd(shape, seed=0, dtype=np.float32, kind="normal", lo=None, hi=None, scale=None):
    """numpy data; big arrays tile a 4M-element random block (fast, deterministic)."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    n = int(np.prod(shape)) if shape else 1
    m = min(n, (1 << 22) + 3)          # odd block length: rows of tiled data differ
    k = (seed, m, kind, lo, hi)
    if k not in _POOL:
        if len(_POOL) > 12: _POOL.clear()
        g = np.random.default_rng(seed + 1)
        if kind == "normal": b = g.standard_normal(m, dtype=np.float32)
        elif kind == "uniform": b = (g.random(m, dtype=np.float32) * (hi - lo) + lo).astype(np.float32)
        else: b = g.integers(lo, hi, m, dtype=np.int32)
        _POOL[k] = b
    b = _POOL[k]
    if scale is not None: b = b * np.float32(scale)
    b = b.astype(ml_dtypes.bfloat16 if dtype is BF16 else dtype, copy=False)
    a = b if n == m else np.resize(b, n)
    return np.array(a.reshape(shape))      # always a fresh buffer: never alias the pool

def dims(size):
    return tuple(int(t) for t in size.split("x"))

def key_raw(seed=0, impl="threefry2x32"):
    n = 2 if impl == "threefry2x32" else 4
    return np.array([0, seed] * (n // 2), dtype=np.uint32)

def wrap(raw, impl):
    return jax.random.wrap_key_data(raw, impl=impl)

def unwrap(k):
    return jax.random.key_data(k)

# ================================================================ CartPole (gym physics, Euler)
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

T3, RBG = "threefry2x32", "rbg"
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

# ================================================================ BERT
BERT = dict(layers=12, hidden=768, heads=12, mlp=3072, vocab=30522, maxpos=512)

def bert_params(cfg, seed=0):
    H, M, V, L = cfg["hidden"], cfg["mlp"], cfg["vocab"], cfg["layers"]
    cnt = [seed]
    def w(*s):
        cnt[0] += 1
        return rnd(s, cnt[0] % 7) * np.float32(0.02)
    z = lambda *s: np.zeros(s, np.float32)
    o = lambda *s: np.ones(s, np.float32)
    layer = lambda: dict(qkv_w=w(H, 3 * H), qkv_b=z(3 * H), o_w=w(H, H), o_b=z(H), ln1_g=o(H), ln1_b=z(H),
                         f1_w=w(H, M), f1_b=z(M), f2_w=w(M, H), f2_b=z(H), ln2_g=o(H), ln2_b=z(H))
    return dict(tok=w(V, H), pos=w(cfg["maxpos"], H), typ=w(2, H), ln_g=o(H), ln_b=z(H),
                layers=[layer() for _ in range(L)],
                head_w=w(H, H), head_b=z(H), hln_g=o(H), hln_b=z(H), out_b=z(V))

def layernorm(x, g, b, eps=1e-12):
    x32 = x.astype(F32)
    m = x32.mean(-1, keepdims=True)
    v = jnp.square(x32 - m).mean(-1, keepdims=True)
    return ((x32 - m) * lax.rsqrt(v + eps) * g + b).astype(x.dtype)

def dropout(key, rate, x):
    if rate == 0.0 or key is None: return x
    keep = key if key.dtype == jnp.bool_ else jax.random.bernoulli(key, 1.0 - rate, x.shape)      # a mask that is given, or one to draw
    return jnp.where(keep, x / (1.0 - rate), jnp.zeros_like(x))

def attention(q, k, v, mask=None, key=None, rate=0.0, impl="eager", causal=False):
    """(B,S,H,D); eager = einsum/softmax/dropout/einsum with f32 softmax"""
    if impl in ("sdpa", "cudnn"):
        # the padding mask is a suffix mask: pass lengths (cuDNN wants those, not a (B,1,1,S) mask)
        ln = None if mask is None else jnp.sum(mask, -1, dtype=jnp.int32)
        cudnn = impl == "cudnn" or jax.default_backend() in ("gpu", "cuda")
        return jax.nn.dot_product_attention(q, k, v, is_causal=causal, key_value_seq_lengths=ln, implementation="cudnn" if cudnn else None)
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(F32) / math.sqrt(q.shape[-1])
    if mask is not None: s = jnp.where(mask[:, None, None, :], s, -1e9)
    if causal:
        i = jnp.arange(s.shape[-1])
        s = jnp.where(i[:, None] >= i[None, :], s, -1e9)
    p = jax.nn.softmax(s, axis=-1).astype(q.dtype)
    p = dropout(key, rate, p)
    return jnp.einsum("bhqk,bkhd->bqhd", p, v)

def bert_fwd(p, ids, mask, key, cfg, rate, impl):
    B, S = ids.shape
    H, NH = cfg["hidden"], cfg["heads"]
    L = cfg["layers"]
    ks = [None] * (1 + 3 * L)
    if rate > 0 and key is not None: ks = key if isinstance(key, list) else list(jax.random.split(key, 1 + 3 * L))
    bf = lambda t: t.astype(BF16)
    x = p["tok"][ids] + p["pos"][:S][None] + p["typ"][0]
    x = bf(dropout(ks[0], rate, layernorm(x, p["ln_g"], p["ln_b"])))
    for i, l in enumerate(p["layers"]):
        qkv = (x @ bf(l["qkv_w"]) + bf(l["qkv_b"])).reshape(B, S, 3, NH, H // NH)
        a = attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], mask, ks[1 + 3 * i], rate, impl).reshape(B, S, H)
        a = dropout(ks[2 + 3 * i], rate, a @ bf(l["o_w"]) + bf(l["o_b"]))
        x = layernorm(x + a, l["ln1_g"], l["ln1_b"])
        h = jax.nn.gelu(x @ bf(l["f1_w"]) + bf(l["f1_b"]), approximate=False)
        h = dropout(ks[3 + 3 * i], rate, h @ bf(l["f2_w"]) + bf(l["f2_b"]))
        x = layernorm(x + h, l["ln2_g"], l["ln2_b"])
    return x

def bert_loss(p, ids, mask, labels, key, cfg, rate, impl):
    x = bert_fwd(p, ids, mask, key, cfg, rate, impl)
    h = jax.nn.gelu(x @ p["head_w"].astype(BF16) + p["head_b"].astype(BF16), approximate=False)
    h = layernorm(h, p["hln_g"], p["hln_b"])
    logits = (h @ p["tok"].astype(BF16).T).astype(F32) + p["out_b"]      # all positions, as HF does
    w = (labels >= 0)
    lse = jax.nn.logsumexp(logits, axis=-1)
    tgt = jnp.take_along_axis(logits, jnp.maximum(labels, 0)[..., None], axis=-1)[..., 0]
    return jnp.sum(jnp.where(w, lse - tgt, 0.0)) / jnp.maximum(jnp.sum(w), 1)

def adam_tree(p, m, v, g, t, lr=1e-4, b1=0.9, b2=0.999, eps=1e-8):
    c1, c2 = 1 - b1 ** t, 1 - b2 ** t
    m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, g)
    v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, v, g)
    p = jax.tree.map(lambda p, m, v: p - lr * (m / c1) / (jnp.sqrt(v / c2) + eps), p, m, v)
    return p, m, v

def bert_batch(b, s, vocab):
    ids = rnd((b, s), 3, np.int32, "int", 0, vocab)
    lab = np.where(rnd((b, s), 4, np.int32, "int", 0, 100) < 15, ids, -100).astype(np.int32)
    mask = np.ones((b, s), bool)
    mask[:, int(s * 0.9):] = (np.arange(b) % 2 == 0)[:, None]      # half the batch padded by 10%
    return ids, mask, lab

def bert_flops(b, s, cfg, train):
    H, M, L, V = cfg["hidden"], cfg["mlp"], cfg["layers"], cfg["vocab"]
    f = b * s * (L * (2 * H * 4 * H + 4 * H * M) + 2 * H * H + 2 * H * V) + L * 4 * b * s * s * H
    return f * (3 if train else 1)

def _bs(size):
    d = dict((t[0], int(t[1:])) for t in size.split("_"))
    return d["b"], d["s"]

def bert_masks(b, s, cfg, rate):
    """dropout's masks as arrays: of the embedding, and per layer of the attention and both results"""
    shapes = [(b, s, cfg["hidden"])] + [(b, cfg["heads"], s, s), (b, s, cfg["hidden"]), (b, s, cfg["hidden"])] * cfg["layers"]
    return [rnd(h, i % 5, np.int32, "int", 0, 1000) >= 1000 * rate for i, h in enumerate(shapes)]

def _bert_train(rate, rng, impl="eager", cfg=BERT):
    """rng "given": masks are arguments. A size may give the number of layers: b16_s512_l3"""
    def build(size, cfg=cfg):
        b, s = _bs(size)
        cfg = dict(cfg, layers=dict((t[0], int(t[1:])) for t in size.split("_")).get("l", cfg["layers"]))
        p = bert_params(cfg)
        z = lambda t: jax.tree.map(np.zeros_like, t)
        def fn(p, m, v, t, key, ids, mask, labels, impl=impl):
            k = jax.random.split(wrap(key, rng or T3), 2)
            loss, g = jax.value_and_grad(bert_loss)(p, ids, mask, labels, k[0] if rng else None, cfg, rate, impl)
            t = t + 1.0
            p, m, v = adam_tree(p, m, v, g, t)
            return p, m, v, t, unwrap(k[1]), loss
        def fn_given(p, m, v, t, masks, ids, mask, labels):
            loss, g = jax.value_and_grad(bert_loss)(p, ids, mask, labels, masks, cfg, rate, impl)
            return *adam_tree(p, m, v, g, t + 1.0), t + 1.0, loss
        ids, mask, lab = bert_batch(b, s, cfg["vocab"])
        if rng == "given":
            return W(fn_given, (p, z(p), z(p), np.float32(0), bert_masks(b, s, cfg, rate), ids, mask, lab), carry=4,
                     flops=bert_flops(b, s, cfg, True), items=b, item_name="seqs", bytes=1)
        return W(fn, (p, z(p), z(p), np.float32(0), key_raw(7, rng or T3), ids, mask, lab), carry=5,
                 peer=partial(fn, impl="cudnn") if impl == "sdpa" else None, flops=bert_flops(b, s, cfg, True), items=b, item_name="seqs", bytes=1)
    return build

def _bert_infer(impl="eager", cfg=BERT):
    def build(size):
        b, s = _bs(size)
        p = bert_params(cfg)
        ids, mask, lab = bert_batch(b, s, cfg["vocab"])
        fl = bert_flops(b, s, dict(cfg, vocab=0), False) - b * s * 2 * cfg["hidden"] ** 2
        return W(lambda p, ids, mask: bert_fwd(p, ids, mask, None, cfg, 0.0, impl), (p, ids, mask),
                 flops=fl, items=b, item_name="seqs", bytes=1)
    return build

BSIZES = ["b16_s512", "b32_s128", "b32_s512", "b16_s128", "b2_s512", "b1_s128"]
TINY = dict(layers=2, hidden=64, heads=2, mlp=128, vocab=512, maxpos=512)
for _nm, _b in {
    "bert_train_do0": _bert_train(0.0, None),
    "bert_train_do10": _bert_train(0.1, T3),
    "bert_train_do10_rbg": _bert_train(0.1, RBG),
    "bert_train_mask10": _bert_train(0.1, "given"),
    "bert_train_do0_sdpa": _bert_train(0.0, None, "sdpa"),
    "bert_infer": _bert_infer(),
    "bert_infer_sdpa": _bert_infer("sdpa"),
}.items():
    REG[_nm] = (_b, BSIZES, "bert")
REG["bert_tiny_train_do0"] = (_bert_train(0.0, None, cfg=TINY), ["b4_s32"], "smoke")
REG["bert_tiny_train_do0_sdpa"] = (_bert_train(0.0, None, "sdpa", cfg=TINY), ["b4_s32"], "smoke")
REG["bert_tiny_train_mask10"] = (_bert_train(0.1, "given", cfg=TINY), ["b4_s32"], "smoke")
REG["bert_tiny_train_do10_rbg"] = (_bert_train(0.1, RBG, cfg=TINY), ["b4_s32"], "smoke")
REG["bert_tiny_train_do10"] = (_bert_train(0.1, T3, cfg=TINY), ["b4_s32"], "smoke")
REG["bert_tiny_infer"] = (_bert_infer(cfg=TINY), ["b4_s32"], "smoke")

# ================================================================ compile-time programs
@reg("tiny_jit", [8], "compile")
def _(size):
    return W(lambda x: x * 2.0 + 1.0, (np.ones(int(size), np.float32),))

@reg("mlp_train", ['b128'], "compile")
def _(size):
    b = int(size[1:])
    D = [784, 512, 256, 10]
    p = [(rnd((D[i], D[i + 1]), i) * np.float32(0.05), np.zeros(D[i + 1], np.float32)) for i in range(3)]
    def loss(p, x, y):
        for i, (w, c) in enumerate(p):
            x = x @ w + c
            if i < 2: x = jax.nn.relu(x)
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1))
    def fn(p, x, y):
        l, g = jax.value_and_grad(loss)(p, x, y)
        return jax.tree.map(lambda a, b: a - 1e-3 * b, p, g), l
    return W(fn, (p, rnd((b, 784), 5), rnd((b,), 6, np.int32, "int", 0, 10)), carry=1)

# ================================================================ micro workloads

@reg("copy", [1048576, 16777216, 67108864, 268435456])                     # plain device copy: the bandwidth limit
def _(s): return W(lambda x: jnp.copy(x), (rnd(int(s)),))

@reg("scale", [1048576, 16777216, 67108864, 268435456])                    # y = 2x+1: the limit for a generated kernel
def _(s): return W(lambda x: x * 2.0 + 1.0, (rnd(int(s)),))

@reg("triad", [1048576, 134217728])                    # a + s*b*c, three inputs
def _(s): return W(lambda a, b, c: a + 0.5 * b * c, (rnd(int(s), 1), rnd(int(s), 2), rnd(int(s), 3)))

@reg("ew_chain", [1048576, 67108864, 268435456])                 # 48 cheap ops in a row
def _(s):
    def fn(x, y):
        a = x
        for i in range(12):
            a = a * (0.9 + 0.01 * i) + y
            a = jnp.maximum(a, -3.0 + 0.1 * i)
            a = jnp.where(a > 2.0, a - y, a)
        return jnp.tanh(a)
    return W(fn, (rnd(int(s), 1), rnd(int(s), 2)))

@reg("ew_chain_transc", [1048576, 16777216, 134217728])          # transcendental-heavy chain
def _(s):
    def fn(x):
        for _ in range(6): x = jnp.sin(x) + jnp.exp(-x * x) + jnp.log1p(x * x)
        return x
    return W(fn, (rnd(int(s), 1),))


@reg("gelu", [1048576, 67108864, 268435456])
def _(s): return W(lambda x: jax.nn.gelu(x, approximate=True), (rnd(int(s)),))

@reg("gelu_bf16", [1048576, 16777216, 134217728])
def _(s): return W(lambda x: jax.nn.gelu(x, approximate=False), (rnd(int(s), 0, BF16),))


@reg("softmax", ['524288x128', '65536x1024', '16384x4096', '4096x16384', '1024x65536', '1024x1000'])
def _(s): return W(lambda x: jax.nn.softmax(x, axis=-1), (rnd(dims(s)),))

@reg("softmax_bf16", ['16384x4096'])
def _(s): return W(lambda x: jax.nn.softmax(x.astype(F32), axis=-1).astype(BF16), (rnd(dims(s), 0, BF16),))


@reg("logsumexp", ['65536x1024', '1024x65536'])
def _(s): return W(lambda x: jax.nn.logsumexp(x, axis=-1), (rnd(dims(s)),))

@reg("layernorm_fwd", ['8192x768', '65536x1024', '8192x8192'])
def _(s):
    r, c = dims(s)
    return W(lambda x, g, b: layernorm(x, g, b, 1e-5), (rnd((r, c)), rnd(c, 1), rnd(c, 2)))

@reg("layernorm_bwd", ['8192x768', '65536x1024', '8192x8192'])
def _(s):
    r, c = dims(s)
    def fn(x, g, b, dy): return jax.vjp(lambda x, g, b: layernorm(x, g, b, 1e-5), x, g, b)[1](dy)
    return W(fn, (rnd((r, c)), rnd(c, 1), rnd(c, 2), rnd((r, c), 3)))

@reg("residual_dropout_layernorm", ['8192x768', '65536x1024'])
def _(s):
    r, c = dims(s)
    def fn(x, h, g, b, key):
        return layernorm(x + dropout(wrap(key, T3), 0.1, h), g, b, 1e-5)
    return W(fn, (rnd((r, c)), rnd((r, c), 4), rnd(c, 1), rnd(c, 2), key_raw(1)))

@reg("layernorm_dropout", ['8192x768'])
def _(s):
    r, c = dims(s)
    return W(lambda x, g, b, key: dropout(wrap(key, T3), 0.1, layernorm(x, g, b, 1e-5)), (rnd((r, c)), rnd(c, 1), rnd(c, 2), key_raw(4)))

@reg("rmsnorm_bf16", ['8192x4096', '65536x1024'])
def _(s):
    r, c = dims(s)
    def fn(x, g):
        x32 = x.astype(F32)
        return (x32 * lax.rsqrt(jnp.mean(x32 * x32, -1, keepdims=True) + 1e-6) * g).astype(BF16)
    return W(fn, (rnd((r, c), 0, BF16), rnd(c, 1)))

@reg("dropout", [1048576, 134217728])
def _(s): return W(lambda x, k: dropout(wrap(k, T3), 0.1, x), (rnd(int(s)), key_raw(3)))

@reg("dropout_rbg", [16777216, 134217728])
def _(s): return W(lambda x, k: dropout(wrap(k, RBG), 0.1, x), (rnd(int(s)), key_raw(3, RBG)))

@reg("random_bits", [16777216, 134217728])
def _(s): return W(lambda k: jax.random.bits(wrap(k, T3), (int(s),), jnp.uint32), (key_raw(5),))


@reg("adam", ['bert', 'small200'])
def _(s):
    if s == "small200": shp = [((i * 37) % 97 + 3, (i * 53) % 61 + 5) for i in range(200)]
    else:
        cfg = dict(BERT, layers=12 if s == "bert" else 4)
        shp = [a.shape for a in jax.tree.leaves(jax.eval_shape(lambda: jax.tree.map(jnp.asarray, bert_params(cfg))))]
    p, m, v, g = ([rnd(h, i % 5 + 10 * j) * np.float32(0.02) if j < 2 else np.abs(rnd(h, i % 5 + 10)) * np.float32(1e-3) if j == 2
                   else rnd(h, i % 5 + 20) for i, h in enumerate(shp)] for j in range(4))
    def fn(p, m, v, t, g):
        t = t + 1.0
        return (*adam_tree(p, m, v, g, t), t)
    return W(fn, (p, m, v, np.float32(0), g), carry=4)


@reg("row_reduce", ['8192x8192', '262144x256', '1048576x16'])
def _(s): return W(lambda x: jnp.sum(x, axis=1), (rnd(dims(s)),))

@reg("col_reduce", ['8192x8192', '262144x256', '256x262144'])
def _(s): return W(lambda x: jnp.sum(x, axis=0), (rnd(dims(s)),))

@reg("full_reduce", [1048576, 16777216, 268435456])
def _(s): return W(lambda x: jnp.sum(x * x), (rnd(int(s)),))


@reg("transpose", ['8192x8192', '16384x4096'])
def _(s): return W(lambda x: x.T * 1.0001, (rnd(dims(s)),))

@reg("transpose_bshd", ['b32_s512', 'b4_s4096'])
def _(s):
    b, n = _bs(s)
    return W(lambda x: jnp.transpose(x, (0, 2, 1, 3)) * 2.0, (rnd((b, n, 12, 64), 0, BF16),))

@reg("concat_multi", [262144, 4194304])          # concatenate whose result has several users
def _(s):
    n = int(s)
    def fn(a, b, c, d):
        y = jnp.concatenate([(a * b + 1.0)[None], jnp.sin(c)[None], (d - a)[None], (b * c)[None]], 0)
        done = (y[0] > 1.0) | (y[2] < -1.0)
        return jnp.where(done[None], 0.0, y), jnp.tanh(y), done
    return W(fn, tuple(rnd(n, i) for i in range(4)))

@reg("argmax", ['65536x1024', '8192x32000'])
def _(s): return W(lambda x: jnp.argmax(x, axis=-1), (rnd(dims(s)),))

@reg("cumsum", ['16777216', '65536x1024'])
def _(s): return W(lambda x: jnp.cumsum(x, axis=-1), (rnd(dims(s)),))

@reg("sort", ['1048576', '16777216'])
def _(s):
    g = np.random.default_rng(9)
    return W(lambda x: jnp.sort(x, axis=-1), (g.random(dims(s), dtype=np.float32),))


@reg("embedding", ['30522x768x8192'])
def _(s):
    v, h, n = dims(s)
    w = W(lambda t, i: t[i] * 1.5, (rnd((v, h)), rnd(n, 1, np.int32, "int", 0, v)))
    w.bytes = n * 4.0 + 2.0 * n * h * 4
    return w

@reg("embedding_grad", ['30522x768x8192', '50257x1024x65536'])
def _(s):
    v, h, n = dims(s)
    def fn(dy, i): return jnp.zeros((v, h), F32).at[i].add(dy)
    return W(fn, (rnd((n, h)), rnd(n, 1, np.int32, "int", 0, v)))


@reg("maxpool", ['64x112x112x64'])
def _(s):
    def fn(x): return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    return W(fn, (rnd(dims(s)),))


def _attn(causal, rate, bwd, impl="eager"):
    def build(size):
        b, s = _bs(size)
        sh = (b, s, 12, 64)
        def f(q, k, v, key):
            return attention(q, k, v, None, wrap(key, T3) if rate else None, rate, impl, causal)
        if bwd:
            def fn(q, k, v, key, do):
                o, vjp = jax.vjp(lambda q, k, v: f(q, k, v, key), q, k, v)
                return (o, *vjp(do))
            args = (*(rnd(sh, i, BF16) for i in range(3)), key_raw(2), rnd(sh, 5, BF16))
        else:
            fn = f
            args = (*(rnd(sh, i, BF16) for i in range(3)), key_raw(2))
        fl = 4.0 * b * 12 * s * s * 64 * (3.5 if bwd else 1.0) * (0.5 if causal else 1.0)
        return W(fn, args, flops=fl)
    return build
AT = ['b16_s512', 'b4_s4096']
for _nm, _b in {"attn_fwd": _attn(False, 0.0, False), "attn_bwd": _attn(False, 0.0, True),
                "attn_causal_do_fwd": _attn(True, 0.1, False), "attn_causal_do_bwd": _attn(True, 0.1, True),
                "attn_sdpa_fwd": _attn(True, 0.0, False, "sdpa"), "attn_sdpa_bwd": _attn(True, 0.0, True, "sdpa"),}.items():
    REG[_nm] = (_b, AT[:1] if _nm in ('attn_bwd', 'attn_causal_do_bwd') else AT, "micro")

for _nm, _b in {"attn_do_fwd": _attn(False, 0.1, False), "attn_do_bwd": _attn(False, 0.1, True)}.items():
    REG[_nm] = (_b, AT[:1], "layer")

@reg("masked_scores", ['b2_h12_s512_d64', 'b16_h12_s512_d64'])      # attention's first half, its scores written out
def _(s):
    b, h, n, d = (int(t[1:]) for t in s.split("_"))
    mask = (rnd((b, n, n), 3, np.int32, "int", 0, 4) > 0) | np.eye(n, dtype=bool)       # a quarter masked, no row wholly
    def fn(q, k, mask):
        x = jnp.einsum("bhqd,bhkd->bhqk", q, k).astype(F32) / math.sqrt(d)
        return jax.nn.softmax(jnp.where(mask[:, None], x, -jnp.inf), -1).astype(BF16)
    return W(fn, (rnd((b, h, n, d), 0, BF16), rnd((b, h, n, d), 1, BF16), mask), flops=2.0 * b * h * n * n * d)

@reg("graph_laplacian", ['4096x4096x64'])                   # the scaled adjacency matrix must not be written out
def _(s):
    m, n, k = dims(s)
    adj = (rnd((m, n), 0, np.int32, "int", 0, 16) == 0).astype(np.float32)
    return W(lambda adj, d, x: x - jnp.matmul(adj / d[:, None], x, precision="highest"),
             (adj, np.maximum(adj.sum(1), 1), rnd((n, k), 1)), flops=2.0 * m * n * k)


@reg("matmul_bf16", ['4096x4096x4096', '8192x768x3072'])
def _(s):
    m, k, n = dims(s)
    return W(lambda a, b: a @ b, (rnd((m, k), 0, BF16), rnd((k, n), 1, BF16)), flops=2.0 * m * k * n)

@reg("matmul_bias_gelu", ['4096x4096x4096', '8192x768x3072'])
def _(s):
    m, k, n = dims(s)
    return W(lambda a, b, c: jax.nn.gelu(a @ b + c, approximate=True),
             (rnd((m, k), 0, BF16), rnd((k, n), 1, BF16), rnd(n, 2, BF16)), flops=2.0 * m * k * n)

@reg("matmul_f32", ['4096x4096x4096', '1024x1024x1024'])
def _(s):
    m, k, n = dims(s)
    return W(lambda a, b: jnp.matmul(a, b, precision="highest"), (rnd((m, k)), rnd((k, n), 1)), flops=2.0 * m * k * n)

@reg("bmm_small", ['4096x32x32x32', '1024x64x64x64'])
def _(s):
    b, m, k, n = dims(s)
    return W(lambda x, y: jnp.einsum("bmk,bkn->bmn", x, y, precision="highest") * 0.5,
             (rnd((b, m, k)), rnd((b, k, n), 1)), flops=2.0 * b * m * k * n)


def _bn(x, g, b):
    x32 = x.astype(F32)
    m = x32.mean((0, 1, 2)); v = (x32 * x32).mean((0, 1, 2)) - m * m
    return ((x32 - m) * (lax.rsqrt(v + 1e-5) * g) + b).astype(x.dtype)

def _conv(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

def _resblock(train):
    def build(s):
        n, h, w_, c = dims(s)
        k = c // 4
        ws = (rnd((1, 1, c, k), 1, BF16, scale=.05), rnd((3, 3, k, k), 2, BF16, scale=.05), rnd((1, 1, k, c), 3, BF16, scale=.05))
        gb = tuple(np.ones(q, np.float32) for q in (k, k, k, k, c, c))
        def f(x, ws, gb):
            y = jax.nn.relu(_bn(_conv(x, ws[0]), gb[0], gb[1]))
            y = jax.nn.relu(_bn(_conv(y, ws[1]), gb[2], gb[3]))
            return jax.nn.relu(_bn(_conv(y, ws[2]), gb[4], gb[5]) + x)
        fl = 2.0 * n * h * w_ * (c * k + 9 * k * k + k * c) * (3 if train else 1)
        if not train: return W(f, (rnd(dims(s), 0, BF16), ws, gb), flops=fl)
        def fn(x, ws, gb, dy):
            o, vjp = jax.vjp(f, x, ws, gb)
            return (o, *vjp(dy))
        return W(fn, (rnd(dims(s), 0, BF16), ws, gb, rnd(dims(s), 5, BF16)), flops=fl)
    return build
REG["resnet_block_fwd"] = (_resblock(False), ["64x56x56x256", "64x14x14x1024"], "micro")
REG["resnet_block_bwd"] = (_resblock(True), ['64x56x56x256'], "micro")

def _lstm_cell(c, x, W_, b):
    h, s = c
    z = jnp.concatenate([x, h], -1) @ W_ + b
    i, f, g, o = jnp.split(z, 4, -1)
    s = jax.nn.sigmoid(f + 1.0) * s + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(s), s

def _lstm(bwd):
    def build(s):
        b, H, T = dims(s)
        Wt, bs = rnd((2 * H, 4 * H), 1) * np.float32(0.03), np.zeros(4 * H, np.float32)
        xs = rnd((T, b, H), 2)
        def f(Wt, bs, xs):
            z = jnp.zeros((b, H), F32)
            (h, c), ys = lax.scan(lambda c, x: ((lambda n: (n, n[0]))(_lstm_cell(c, x, Wt, bs))), (z, z), xs)
            return ys
        fl = 2.0 * T * b * 2 * H * 4 * H * (3 if bwd else 1)
        if not bwd: return W(f, (Wt, bs, xs), flops=fl, items=T, item_name="steps")
        return W(lambda Wt, bs, xs: jax.grad(lambda Wt, bs: jnp.sum(f(Wt, bs, xs) ** 2), (0, 1))(Wt, bs), (Wt, bs, xs),
                 flops=fl, items=T, item_name="steps")
    return build
REG["lstm_scan"] = (_lstm(False), ['32x256x1000'], "micro")
REG["lstm_scan_bwd"] = (_lstm(True), ["32x256x1000"], "micro")


@reg("blackscholes", [1048576, 67108864])
def _(s):
    n = int(s)
    def fn(S, K, T, r, v):
        d1 = (jnp.log(S / K) + (r + 0.5 * v * v) * T) / (v * jnp.sqrt(T))
        d2 = d1 - v * jnp.sqrt(T)
        cdf = lambda x: 0.5 * (1.0 + lax.erf(x * 0.7071067811865476))
        e = K * jnp.exp(-r * T)
        return S * cdf(d1) - e * cdf(d2), e * cdf(-d2) - S * cdf(-d1)
    u = lambda i, lo, hi: rnd(n, i, np.float32, "uniform", lo, hi)
    return W(fn, (u(1, 10., 100.), u(2, 10., 100.), u(3, 0.2, 2.), u(4, 0.01, 0.1), u(5, 0.1, 0.6)))

def _heat(u):
    c = u[1:-1, 1:-1, 1:-1]
    l = u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2]
    return jnp.pad(c + 0.1 * (l - 6.0 * c), 1)

@reg("heat3d", ['256', '512'])
def _(s):
    n = int(s)
    return W(_heat, (rnd((n, n, n)),), carry=0)

@reg("heat3d_loop10", ['256'])
def _(s):
    n = int(s)
    w = W(lambda u: lax.fori_loop(0, 10, lambda i, u: _heat(u), u), (rnd((n, n, n)),))
    w.bytes = 10 * 8.0 * n ** 3
    return w


@reg("nbody", ['2048', '8192'])
def _(s):
    n = int(s)
    def fn(p, v, m):
        d = p[None, :, :] - p[:, None, :]                  # (N,N,3): must be fused away
        r2 = jnp.sum(d * d, -1) + 1e-3
        f = m[None, :] * lax.rsqrt(r2) / r2
        a = jnp.sum(d * f[..., None], 1)
        v = v + 1e-3 * a
        return p + 1e-3 * v, v
    return W(fn, (rnd((n, 3)), rnd((n, 3), 1), np.abs(rnd(n, 2))), flops=20.0 * n * n)



@reg("moe_router", ['8192x64'])
def _(s):
    T, E = dims(s)
    def fn(logits):
        p = jax.nn.softmax(logits, -1)
        g, idx = lax.top_k(p, 2)
        g = g / jnp.sum(g, -1, keepdims=True)
        oh = jax.nn.one_hot(idx, E, dtype=jnp.int32)                  # (T,2,E)
        pos = jnp.cumsum(oh.reshape(T * 2, E), 0).reshape(T, 2, E) * oh
        slot = jnp.sum(pos, -1) - 1
        cap = 2 * T // E
        keep = slot < cap
        load = jnp.mean(oh[:, 0].astype(F32), 0)
        aux = E * jnp.sum(load * jnp.mean(p, 0))
        return idx, slot, jnp.where(keep, g, 0.0), aux
    return W(fn, (rnd((T, E)),))

@reg("xent", ['8192x32000'])
def _(s):
    n, v = dims(s)
    def loss(x, y): return jnp.mean(jax.nn.logsumexp(x, -1) - jnp.take_along_axis(x, y[:, None], 1)[:, 0])
    return W(lambda x, y: jax.value_and_grad(loss)(x, y), (rnd((n, v)), rnd(n, 1, np.int32, "int", 0, v)))




@reg("many_small", ['64'])                          # independent small elementwise ops: horizontal fusion
def _(s):
    k = int(s)
    xs = [rnd(1000 + 17 * i, i % 7) for i in range(k)]
    return W(lambda xs: [jnp.tanh(x) * (1.0 + 0.01 * i) for i, x in enumerate(xs)], (xs,))

@reg("unrolled_py", ['1024', '1048576'])                   # 200 steps as a Python loop, no scan: one long straight-line program
def _(s):
    def fn(x, v, k):
        for i in range(200):
            a = -k * jnp.sin(x) - 0.1 * v + 0.01 * i
            v = v + 0.02 * a
            x = jnp.where(jnp.abs(x) > 3.0, 0.5 * x, x + 0.02 * v)
        return x, v
    return W(fn, (rnd(int(s)), rnd(int(s), 1), np.abs(rnd(int(s), 2))), carry=2, items=200.0 * int(s), item_name="steps")

@reg("integrate", [16777216])                               # midpoint rule: the grid must not be written out
def _(s):
    n = int(s)
    def fn(a, b):
        h = (b - a) / n
        x = a + h * (jnp.arange(n, dtype=F32) + 0.5)
        return h * jnp.sum(jnp.exp(-x * x) * jnp.cos(3.0 * x) / (1.0 + x * x))
    return W(fn, (np.float32(-1.0), np.float32(2.0)), items=float(n), item_name="points")

def _mlp(p, x):
    for i, (w, b) in enumerate(p):
        x = jnp.matmul(x, w, precision="highest") + b
        if i + 1 < len(p): x = jnp.tanh(x)
    return x

def _mlp_params(D, seed=0):
    return [(rnd((D[i], D[i + 1]), seed + i) * np.float32(1 / math.sqrt(D[i])), np.zeros(D[i + 1], np.float32)) for i in range(len(D) - 1)]

@reg("maml", ['32'])                                       # meta-learning: the gradient through one SGD step of every task
def _(s):
    k, shots = int(s), 10
    loss = lambda p, x, y: jnp.mean((_mlp(p, x) - y) ** 2)
    def task(p, xa, ya, xb, yb):
        g = jax.grad(loss)(p, xa, ya)
        return loss(jax.tree.map(lambda a, b: a - 0.01 * b, p, g), xb, yb)
    def fn(p, *xy):
        l, g = jax.value_and_grad(lambda p: jnp.mean(jax.vmap(task, (None, 0, 0, 0, 0))(p, *xy)))(p)
        return jax.tree.map(lambda a, b: a - 1e-3 * b, p, g), l
    amp, ph = rnd((k, 1, 1), 5, np.float32, "uniform", 0.1, 5.0), rnd((k, 1, 1), 6, np.float32, "uniform", 0.0, 3.1)
    xa, xb = (rnd((k, shots, 1), i, np.float32, "uniform", -5.0, 5.0) for i in (7, 8))
    return W(fn, (_mlp_params([1, 40, 40, 1]), xa, amp * np.sin(xa + ph), xb, amp * np.sin(xb + ph)), carry=1, items=k, item_name="tasks")


@reg("varlen_nlp", [f"b8_s{n}" for n in (16, 23, 37, 48, 64, 101, 128)])     # one function, many lengths: compile time counts as much
def _(s):
    b, n = _bs(s)
    V, H = 30522, 256
    def fn(tok, w, c, ids, lens):
        ok = (jnp.arange(n)[None] < lens[:, None])[..., None]
        x = tok[ids]
        mean = jnp.sum(jnp.where(ok, x, 0.0), 1) / lens[:, None]
        top = jnp.max(jnp.where(ok, x, -jnp.inf), 1)
        return jax.nn.softmax(jnp.matmul(jnp.tanh(jnp.concatenate([mean, top], -1)), w, precision="highest") + c, -1)
    args = (rnd((V, H)), rnd((2 * H, 16), 1) * np.float32(0.05), rnd(16, 2), rnd((b, n), 3, np.int32, "int", 0, V),
            rnd(b, 4, np.int32, "int", n // 2, n + 1))
    w = W(fn, args)
    w.bytes = nbytes(args[1:]) + 4.0 * b * n * H + 4.0 * b * 16
    return w


import model_programs, sys          # noqa: E402, E401: they are built from this module's parts

model_programs.register(sys.modules[__name__])
