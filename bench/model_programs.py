"""Models and layers around contractions, in plain JAX: more workloads of workloads.py, in the groups "model" and "layer".

    gpt_train           a decoder with dropout, loss, gradients and Adam; size l6_h512_b16_s512: layers, width, batch, length
    resnet50_train      bf16 activations, batch statistics, momentum; size b64_r224: batch, resolution
    sdpa_*              jax.nn.dot_product_attention, forward or forward and backward; the peer's is cuDNN's kernel
    conv_relu           convolution + bias + relu; size b32_r56_i64_o64_k3_s1: resolution, channels in and out, kernel, stride
    conv_add_relu       the same with a residual before relu
"""
import math
import re
import types

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

HEAD_WIDTH = 64  # of the decoder's attention, as in GPT-2


def fields(size):
    """{"b": 16, "s": 512} of "b16_s512"."""
    return {m[1]: int(m[2]) for m in re.finditer(r"([a-z])(\d+)", size)}


def scaled(w, shape, seed, scale):
    return w.rnd(shape, seed % 7, scale=scale)


# ---- a decoder


def decoder_params(w, layers, width, vocab, length):
    z, o = (lambda *s: np.zeros(s, np.float32)), (lambda *s: np.ones(s, np.float32))
    layer = lambda i: dict(  # noqa: E731
        ln1_g=o(width), ln1_b=z(width), qkv_w=scaled(w, (width, 3 * width), i, 0.02), qkv_b=z(3 * width),
        o_w=scaled(w, (width, width), i + 1, 0.02), o_b=z(width), ln2_g=o(width), ln2_b=z(width),
        f1_w=scaled(w, (width, 4 * width), i + 2, 0.02), f1_b=z(4 * width), f2_w=scaled(w, (4 * width, width), i + 3, 0.02), f2_b=z(width))  # fmt: skip
    return dict(tok=scaled(w, (vocab, width), 1, 0.02), pos=scaled(w, (length, width), 2, 0.01), ln_g=o(width), ln_b=z(width),
                layers=[layer(4 * i) for i in range(layers)])  # fmt: skip


def decoder_loss(w, p, tokens, key, rate, head=HEAD_WIDTH, dtype=jnp.bfloat16):
    """Mean cross-entropy of the next token; activations in `dtype`, attention's softmax and the loss in f32."""
    inputs, wanted = tokens[:, :-1], tokens[:, 1:]
    b, s = inputs.shape
    width = p["tok"].shape[1]
    cast = lambda x: x.astype(dtype)  # noqa: E731
    keys = list(jax.random.split(key, 1 + 3 * len(p["layers"]))) if rate else [None] * (1 + 3 * len(p["layers"]))
    x = w.dropout(keys[0], rate, cast(p["tok"][inputs] + p["pos"][:s]))
    for i, l in enumerate(p["layers"]):
        qkv = (w.layernorm(x, l["ln1_g"], l["ln1_b"], 1e-5) @ cast(l["qkv_w"]) + cast(l["qkv_b"])).reshape(b, s, 3, -1, min(head, width))
        a = w.attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], None, keys[1 + 3 * i], rate, causal=True).reshape(b, s, width)
        x = x + w.dropout(keys[2 + 3 * i], rate, a @ cast(l["o_w"]) + cast(l["o_b"]))
        h = jax.nn.gelu(w.layernorm(x, l["ln2_g"], l["ln2_b"], 1e-5) @ cast(l["f1_w"]) + cast(l["f1_b"]), approximate=True)
        x = x + w.dropout(keys[3 + 3 * i], rate, h @ cast(l["f2_w"]) + cast(l["f2_b"]))
    logits = (w.layernorm(x, p["ln_g"], p["ln_b"], 1e-5) @ cast(p["tok"]).T).astype(jnp.float32)
    return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, wanted[..., None], -1)[..., 0])


def decoder_step(w, rate, **how):
    """(parameters, moments, count, key, tokens) -> the next ones and the loss"""
    def step(p, m, v, t, key, tokens):
        used, key = jax.random.split(w.wrap(key, w.T3))
        loss, g = jax.value_and_grad(lambda p: decoder_loss(w, p, tokens, used, rate, **how))(p)
        t = t + 1.0
        return (*w.adam_tree(p, m, v, g, t), t, w.unwrap(key), loss)
    return step


def decoder_flops(layers, width, vocab, b, s):
    return 3.0 * b * s * (layers * (24.0 * width * width + 4.0 * s * width) + 2.0 * width * vocab)


def decoder(w, rate, vocab):
    def build(size):
        of = fields(size)
        p = decoder_params(w, of["l"], of["h"], vocab, of["s"])
        zeros = lambda: jax.tree.map(np.zeros_like, p)  # noqa: E731
        tokens = w.rnd((of["b"], of["s"] + 1), 3, np.int32, "int", 0, vocab)
        return w.W(decoder_step(w, rate), (p, zeros(), zeros(), np.float32(0), w.key_raw(7), tokens), carry=5,
                   flops=decoder_flops(of["l"], of["h"], vocab, of["b"], of["s"]), items=of["b"], item_name="seqs", bytes=1)  # fmt: skip
    return build


# ---- a residual network

STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))  # ResNet-50: blocks, channels of their 3 x 3 convolution
CLASSES = 1000


def conv(x, kernel, stride=1):
    return lax.conv_general_dilated(x, kernel.astype(x.dtype), (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def resnet_params(w):
    seeds = iter(range(1000))
    def unit(k, i, o):
        return dict(w=scaled(w, (k, k, i, o), next(seeds), math.sqrt(2 / (k * k * i))), g=np.ones(o, np.float32), b=np.zeros(o, np.float32))
    blocks, wide = [], 64
    for count, c in STAGES:
        for i in range(count):
            blocks.append(dict(a=unit(1, wide, c), b=unit(3, c, c), c=unit(1, c, 4 * c)) | (dict(d=unit(1, wide, 4 * c)) if i == 0 else {}))
            wide = 4 * c
    return dict(stem=unit(7, 3, 64), blocks=blocks, out_w=scaled(w, (wide, CLASSES), 5, 0.01), out_b=np.zeros(CLASSES, np.float32))


def resnet_loss(p, images, labels):
    """Mean cross-entropy; convolutions in the type of the images, batch statistics and the loss in f32."""
    def unit(x, u, stride=1):
        x = conv(x, u["w"], stride)
        x32 = x.astype(jnp.float32)
        mean = x32.mean((0, 1, 2))
        var = jnp.maximum((x32 * x32).mean((0, 1, 2)) - mean * mean, 0.0)
        return ((x32 - mean) * (lax.rsqrt(var + 1e-5) * u["g"]) + u["b"]).astype(x.dtype)
    x = jax.nn.relu(unit(images, p["stem"], 2))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    at = 0
    for stage, (count, _) in enumerate(STAGES):
        for i in range(count):
            u, stride = p["blocks"][at], 2 if stage > 0 and i == 0 else 1
            y = jax.nn.relu(unit(jax.nn.relu(unit(x, u["a"])), u["b"], stride))
            x = jax.nn.relu(unit(y, u["c"]) + (unit(x, u["d"], stride) if "d" in u else x))
            at += 1
    logits = x.astype(jnp.float32).mean((1, 2)) @ p["out_w"] + p["out_b"]
    return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, labels[:, None], 1)[:, 0])


def resnet_flops(b, r):
    """Three times the multiplications of a forward pass: 4.09 G multiply-adds for an image of 224 x 224 pixels (He et al., ResNet-50 v1.5)."""
    return 3 * 2 * 4.09e9 * b * (r / 224) ** 2


def resnet_train(w):
    def build(size):
        of = fields(size)
        p = resnet_params(w)
        def step(p, momentum, images, labels):
            loss, g = jax.value_and_grad(resnet_loss)(p, images, labels)
            momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, g)
            return jax.tree.map(lambda p, m: p - 0.05 * m, p, momentum), momentum, loss
        images = w.rnd((of["b"], of["r"], of["r"], 3), 1, jnp.bfloat16)
        labels = w.rnd(of["b"], 2, np.int32, "int", 0, CLASSES)
        return w.W(step, (p, jax.tree.map(np.zeros_like, p), images, labels), carry=2, flops=resnet_flops(of["b"], of["r"]),
                   items=of["b"], item_name="images", bytes=1)  # fmt: skip
    return build


# ---- layers


def conv_layer(w, residual):
    def build(size):
        of = fields(size)
        b, r, i, o, k, s = (of[c] for c in "brioks")
        out = -(-r // s)
        args = [w.rnd((b, r, r, i), 0, jnp.bfloat16), w.rnd((k, k, i, o), 1, jnp.bfloat16, scale=(k * k * i) ** -0.5), w.rnd(o, 2, jnp.bfloat16)]
        if residual:
            args.append(w.rnd((b, out, out, o), 3, jnp.bfloat16))
        fn = lambda x, kernel, bias, *more: jax.nn.relu(sum(more, conv(x, kernel, s) + bias))  # noqa: E731
        return w.W(fn, tuple(args), flops=2.0 * b * out * out * o * k * k * i)
    return build


def resnet_layers(b):
    """(workload, size) of the 20 distinct convolutions of ResNet-50 that end in relu, at a resolution of 224."""
    made = [("conv_relu", 224, 3, 64, 7, 2)]
    wide, r = 64, 56
    for stage, (_, c) in enumerate(STAGES):
        down = 2 if stage else 1
        made += [("conv_relu", r, wide, c, 1, 1), ("conv_relu", r, c, c, 3, down)]
        r //= down
        made += [("conv_add_relu", r, c, 4 * c, 1, 1), ("conv_relu", r, 4 * c, c, 1, 1)]
        made += [("conv_relu", r, c, c, 3, 1)] if stage else []
        wide = 4 * c
    return [(name, f"b{b}_r{r}_i{i}_o{o}_k{k}_s{s}") for name, r, i, o, k, s in made]


def sdpa(w, causal, backward):
    def build(size):
        of = fields(size)
        b, h, s, d = (of[c] for c in "bhsd")
        def made(implementation):
            def forward(q, k, v):
                return jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation=implementation)
            def both(q, k, v, slope):
                out, vjp = jax.vjp(forward, q, k, v)
                return (out, *vjp(slope))
            return both if backward else forward
        args = tuple(w.rnd((b, s, h, d), i, jnp.bfloat16) for i in range(4 if backward else 3))
        flops = 4.0 * b * h * s * s * d * (3.5 if backward else 1.0) * (0.5 if causal else 1.0)
        return w.W(made(None), args, peer=made("cudnn"), flops=flops)
    return build


def register(w):
    """Adds these workloads to the registry of the module workloads."""
    w = types.SimpleNamespace(**{k: v for k, v in vars(w).items() if not k.startswith("__")})
    attention = ["b4_h16_s2048_d128", "b1_h16_s8192_d128"]
    layers = resnet_layers(32)
    for name, build, sizes, group in (
        ("gpt_train", decoder(w, 0.1, 50257), ["l6_h512_b16_s512", "l12_h768_b8_s1024"], "model"),
        ("gpt_tiny_train", decoder(w, 0.1, 331), ["l2_h64_b4_s33"], "smoke"),
        ("resnet50_train", resnet_train(w), ["b64_r224"], "model"),
        ("conv_relu", conv_layer(w, False), [s for n, s in layers if n == "conv_relu"], "layer"),
        ("conv_add_relu", conv_layer(w, True), [s for n, s in layers if n == "conv_add_relu"], "layer"),
        ("sdpa_fwd", sdpa(w, False, False), attention, "layer"), ("sdpa_bwd", sdpa(w, False, True), attention, "layer"),
        ("sdpa_causal_fwd", sdpa(w, True, False), attention, "layer"), ("sdpa_causal_bwd", sdpa(w, True, True), attention, "layer"),
    ):  # fmt: skip
        w.REG[name] = (build, sizes, group)
