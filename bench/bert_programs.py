"""Workloads: BERT, its training steps and its inference. Its parts are those of other workloads, too: attention, layer norms, dropout, Adam."""
import math
from functools import partial

import jax, jax.numpy as jnp
import numpy as np
from jax import lax
from workload_registry import BF16, F32, RBG, REG, T3, W, key_raw, rnd, unwrap, wrap

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

def batch_and_length(size):
    d = dict((t[0], int(t[1:])) for t in size.split("_"))
    return d["b"], d["s"]

def bert_masks(b, s, cfg, rate):
    """dropout's masks as arrays: of the embedding, and per layer of the attention and both results"""
    shapes = [(b, s, cfg["hidden"])] + [(b, cfg["heads"], s, s), (b, s, cfg["hidden"]), (b, s, cfg["hidden"])] * cfg["layers"]
    return [rnd(h, i % 5, np.int32, "int", 0, 1000) >= 1000 * rate for i, h in enumerate(shapes)]

def bert_train(rate, rng, impl="eager", cfg=BERT):
    """rng "given": masks are arguments. A size may give the number of layers: b16_s512_l3"""
    def build(size, cfg=cfg):
        b, s = batch_and_length(size)
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

def bert_infer(impl="eager", cfg=BERT):
    def build(size):
        b, s = batch_and_length(size)
        p = bert_params(cfg)
        ids, mask, lab = bert_batch(b, s, cfg["vocab"])
        fl = bert_flops(b, s, dict(cfg, vocab=0), False) - b * s * 2 * cfg["hidden"] ** 2
        return W(lambda p, ids, mask: bert_fwd(p, ids, mask, None, cfg, 0.0, impl), (p, ids, mask),
                 flops=fl, items=b, item_name="seqs", bytes=1)
    return build

BSIZES = ["b16_s512", "b32_s128", "b32_s512", "b16_s128", "b2_s512", "b1_s128"]
TINY = dict(layers=2, hidden=64, heads=2, mlp=128, vocab=512, maxpos=512)
for _nm, _b in {
    "bert_train_do0": bert_train(0.0, None),
    "bert_train_do10": bert_train(0.1, T3),
    "bert_train_do10_rbg": bert_train(0.1, RBG),
    "bert_train_mask10": bert_train(0.1, "given"),
    "bert_train_do0_sdpa": bert_train(0.0, None, "sdpa"),
    "bert_infer": bert_infer(),
    "bert_infer_sdpa": bert_infer("sdpa"),
}.items():
    REG[_nm] = (_b, BSIZES, "bert")
REG["bert_tiny_train_do0"] = (bert_train(0.0, None, cfg=TINY), ["b4_s32"], "smoke")
REG["bert_tiny_train_do0_sdpa"] = (bert_train(0.0, None, "sdpa", cfg=TINY), ["b4_s32"], "smoke")
REG["bert_tiny_train_mask10"] = (bert_train(0.1, "given", cfg=TINY), ["b4_s32"], "smoke")
REG["bert_tiny_train_do10_rbg"] = (bert_train(0.1, RBG, cfg=TINY), ["b4_s32"], "smoke")
REG["bert_tiny_train_do10"] = (bert_train(0.1, T3, cfg=TINY), ["b4_s32"], "smoke")
REG["bert_tiny_infer"] = (bert_infer(cfg=TINY), ["b4_s32"], "smoke")
