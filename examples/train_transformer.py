"""Trains a small transformer, written in plain JAX with optax, to reverse words. Independent of Tokamak.

    JAX_PLATFORMS=tokamak python examples/train_transformer.py
    python examples/train_transformer.py --steps 20 --json      # the losses, for the tests"""

import argparse
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax

from progress import bar

LETTERS, LENGTH, WIDTH, HEADS, LAYERS = 12, 6, 32, 4, 2
TOKENS = LETTERS + 1  # and the separator between a word and its reverse


def draw(count, seed):
    """Words, a separator, and the reversed words: int32 [count, 2 * LENGTH + 1]."""
    words = np.random.default_rng(seed).integers(0, LETTERS, (count, LENGTH))
    mark = np.full((count, 1), LETTERS)
    return np.concatenate([words, mark, words[:, ::-1]], axis=1).astype(np.int32)


def init(key):
    def matrix(key, rows, columns):
        return jax.random.normal(key, (rows, columns)) * rows**-0.5

    keys = iter(jax.random.split(key, 3 + 4 * LAYERS))
    layers = [
        {
            "qkv": matrix(next(keys), WIDTH, 3 * WIDTH), "out": matrix(next(keys), WIDTH, WIDTH),
            "up": matrix(next(keys), WIDTH, 4 * WIDTH), "down": matrix(next(keys), 4 * WIDTH, WIDTH),
            "scale_1": jnp.ones(WIDTH), "scale_2": jnp.ones(WIDTH),
        }
        for _ in range(LAYERS)
    ]  # fmt: skip
    return {
        "embed": matrix(next(keys), TOKENS, WIDTH) * TOKENS**0.5 * 0.1,
        "position": matrix(next(keys), 2 * LENGTH, WIDTH) * 0.1,
        "read": matrix(next(keys), WIDTH, TOKENS),
        "layers": layers,
    }


def norm(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def block(layer, x):
    batch, length, _ = x.shape
    qkv = (norm(x, layer["scale_1"]) @ layer["qkv"]).reshape(batch, length, 3, HEADS, WIDTH // HEADS)
    q, k, v = (qkv[:, :, i].swapaxes(1, 2) for i in range(3))
    scores = q @ k.swapaxes(-1, -2) * (WIDTH // HEADS) ** -0.5
    seen = jnp.tril(jnp.ones((length, length), bool))
    mixed = jax.nn.softmax(jnp.where(seen, scores, -1e9), axis=-1) @ v
    x = x + mixed.swapaxes(1, 2).reshape(batch, length, WIDTH) @ layer["out"]
    return x + jax.nn.gelu(norm(x, layer["scale_2"]) @ layer["up"]) @ layer["down"]


def logits_of(params, tokens):
    x = params["embed"][tokens] + params["position"]
    for layer in params["layers"]:
        x = block(layer, x)
    return x @ params["read"]


def loss_of(params, tokens):
    """Cross entropy of the reversed half: the first half is not predictable."""
    logits = logits_of(params, tokens[:, :-1])[:, LENGTH:]
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, LENGTH + 1 :]).mean()


def train(steps, batch=32, show=bar):
    """The loss after each step, and the fraction of letters of fresh words reversed correctly at the end."""
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0), optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-2, 10, max(steps, 20)))
    )
    params = jax.jit(init)(jax.random.key(0))
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, tokens):
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    losses = []
    for i in range(steps):
        params, state, loss = step(params, state, draw(batch, seed=i))
        losses.append(float(loss))
        show(i + 1, steps, f"loss {losses[-1]:.3f}")
    words = draw(64, seed=10**6)
    guessed = jnp.argmax(jax.jit(logits_of)(params, words[:, :-1]), axis=-1)[:, LENGTH:]
    return losses, float(jnp.mean(guessed == words[:, LENGTH + 1 :]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--json", action="store_true", help="print the losses as JSON, and no bar")
    args = parser.parse_args()
    losses, right = train(args.steps, args.batch, (lambda *_: None) if args.json else bar)
    if args.json:
        print(json.dumps({"platform": jax.default_backend(), "losses": losses, "right": right}))
    else:
        print(f"{jax.default_backend()}: loss {losses[0]:.3f} -> {losses[-1]:.3f}; {right:.0%} of letters right in 64 fresh words")


if __name__ == "__main__":
    main()
