"""Workloads: attention, matrix products, convolutions and recurrences."""
import math

import jax, jax.numpy as jnp
import numpy as np
from bert_programs import attention, batch_and_length
from jax import lax
from workload_registry import BF16, F32, REG, T3, W, dims, key_raw, reg, rnd, wrap

def _attn(causal, rate, bwd, impl="eager"):
    def build(size):
        b, s = batch_and_length(size)
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
