"""The type of the workloads of workloads.py, the registry that enumerates them, and their data."""
import dataclasses

import jax, jax.numpy as jnp
import ml_dtypes, numpy as np

F32, BF16 = jnp.float32, jnp.bfloat16
T3, RBG = "threefry2x32", "rbg"
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
