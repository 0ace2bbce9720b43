"""Workloads: small programs as users write them, from finance, physics, learning and language."""
import math

import jax, jax.numpy as jnp
import numpy as np
from bert_programs import batch_and_length
from jax import lax
from workload_registry import F32, W, dims, nbytes, reg, rnd

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
    b, n = batch_and_length(s)
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
