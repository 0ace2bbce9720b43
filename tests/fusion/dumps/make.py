#!/usr/bin/env python3
"""Writes the fused programs of XLA's CPU compiler for three programs, as --xla_dump_to dumps them, into a folder:

    make.py FOLDER      cartpole_step.txt, cartpole_scan.txt, bert_layer.txt

`tokamak explain --xla-dump` is tested on the files in this folder (made with JAX 0.10.2) and, if JAX is installed, on new ones."""
import glob
import os
import re
import sys
import tempfile


def programs():
    import jax
    import jax.numpy as jnp

    def physics(state, action):
        x, v, a, w = state[0], state[1], state[2], state[3]
        force = jnp.where(action, 10.0, -10.0)
        c, s = jnp.cos(a), jnp.sin(a)
        t = (force + 0.05 * w * w * s) / 1.1
        alpha = (9.8 * s - c * t) / (0.5 * (4.0 / 3.0 - 0.1 * c * c / 1.1))
        acc = t - 0.05 * alpha * c / 1.1
        return jnp.stack([x + 0.02 * v, v + 0.02 * acc, a + 0.02 * w, w + 0.02 * alpha])

    def step(state, action, fresh):
        state = physics(state, action)
        done = (jnp.abs(state[0]) > 2.4) | (jnp.abs(state[2]) > 0.2094)
        return jnp.where(done, fresh, state), 1.0 - done

    def cartpole_scan(state, actions, fresh):
        def body(state, action):
            return step(state, action, fresh)
        return jax.lax.scan(body, state, actions)

    def norm(x, g, b):
        m = x.mean(-1, keepdims=True)
        v = ((x - m) ** 2).mean(-1, keepdims=True)
        return (x - m) * jax.lax.rsqrt(v + 1e-12) * g + b

    def bert_layer(x, p):
        n, d = x.shape
        q, k, v = (jnp.reshape(x @ p[w] + p[w + "b"], (n, 4, d // 4)) for w in ("q", "k", "v"))
        scores = jnp.einsum("qhd,khd->hqk", q, k) / (d // 4) ** 0.5
        mixed = jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores), v).reshape(n, d)
        x = norm(x + mixed @ p["o"] + p["ob"], p["g1"], p["b1"])
        h = jax.nn.gelu(x @ p["up"] + p["upb"]) @ p["down"] + p["downb"]
        return norm(x + h, p["g2"], p["b2"])

    f32 = lambda *dims: jax.ShapeDtypeStruct(dims, jnp.float32)
    pred = lambda *dims: jax.ShapeDtypeStruct(dims, jnp.bool_)
    d, h = 64, 256
    weights = {w: f32(d, d) for w in "qkvo"} | {w: f32(d) for w in ("qb", "kb", "vb", "ob", "downb", "g1", "b1", "g2", "b2")}
    weights |= {"up": f32(d, h), "upb": f32(h), "down": f32(h, d)}
    return {"cartpole_step": (step, (f32(4, 256), pred(256), f32(4, 256))),
            "cartpole_scan": (cartpole_scan, (f32(4, 256), pred(50, 256), f32(4, 256))),
            "bert_layer": (bert_layer, (f32(32, d), weights))}


def main(folder):
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as dump:
        os.environ["XLA_FLAGS"] = f"--xla_dump_to={dump} --xla_dump_hlo_as_text"
        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax
        for name, (function, arguments) in programs().items():
            function.__name__ = name
            jax.jit(function).lower(*arguments).compile()
        for path in glob.glob(f"{dump}/*after_optimizations.txt"):
            name = re.search(r"jit_(\w+?)\.", os.path.basename(path))
            if name and name[1] in programs():
                text = open(path).read().replace(os.path.abspath(__file__), "make.py")
                open(os.path.join(folder, name[1] + ".txt"), "w").write(text)


if __name__ == "__main__":
    main(sys.argv[1])
