"""Workloads: elementwise operations, rows, reductions, random numbers, data movement; and two small programs that measure compilation."""
import jax, jax.numpy as jnp
import numpy as np
from bert_programs import BERT, adam_tree, batch_and_length, bert_params, dropout, layernorm
from jax import lax
from workload_registry import BF16, F32, RBG, T3, W, dims, key_raw, reg, rnd, wrap

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
    b, n = batch_and_length(s)
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
