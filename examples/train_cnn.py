"""Trains a small flax CNN to classify drawn shapes. Independent of Tokamak.

    JAX_PLATFORMS=tokamak python examples/train_cnn.py
    python examples/train_cnn.py --steps 20 --json      # the losses, for the tests"""

import argparse
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

from progress import bar

SIZE, CLASSES = 12, 4


def draw(count, seed):
    """Noisy pictures of a horizontal bar, a vertical bar, a cross or a square, and their labels."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, CLASSES, count)
    images = random.normal(0, 0.3, (count, SIZE, SIZE, 1)).astype(np.float32)
    for image, label in zip(images, labels):
        row, column = random.integers(3, SIZE - 3, 2)
        if label in (0, 2):
            image[row, 1:-1, 0] += 1
        if label in (1, 2):
            image[1:-1, column, 0] += 1
        if label == 3:
            image[row - 2 : row + 3, column - 2 : column + 3, 0] += 1
    return images, labels.astype(np.int32)


class Cnn(nn.Module):
    @nn.compact
    def __call__(self, x):
        for features in (8, 16):
            x = nn.Conv(features, (3, 3))(x)
            x = nn.GroupNorm(num_groups=4)(x)
            x = nn.relu(x)
            x = nn.max_pool(x, (2, 2), strides=(2, 2))
        x = x.reshape((x.shape[0], -1))
        return nn.Dense(CLASSES)(nn.relu(nn.Dense(32)(x)))


def train(steps, batch=32, show=bar):
    """The loss after each step, and the accuracy on fresh pictures at the end."""
    model, optimizer = Cnn(), optax.adamw(3e-3)
    params = model.init(jax.random.key(0), jnp.zeros((1, SIZE, SIZE, 1)))
    state = optimizer.init(params)

    def loss_of(params, images, labels):
        return optax.softmax_cross_entropy_with_integer_labels(model.apply(params, images), labels).mean()

    @jax.jit
    def step(params, state, images, labels):
        loss, grads = jax.value_and_grad(loss_of)(params, images, labels)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    losses = []
    for i in range(steps):
        params, state, loss = step(params, state, *draw(batch, seed=i))
        losses.append(float(loss))
        show(i + 1, steps, f"loss {losses[-1]:.3f}")
    images, labels = draw(64, seed=10**6)
    right = float(jnp.mean(jnp.argmax(jax.jit(model.apply)(params, images), axis=-1) == labels))
    return losses, right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--json", action="store_true", help="print the losses as JSON, and no bar")
    args = parser.parse_args()
    losses, right = train(args.steps, args.batch, (lambda *_: None) if args.json else bar)
    if args.json:
        print(json.dumps({"platform": jax.default_backend(), "losses": losses, "right": right}))
    else:
        print(f"{jax.default_backend()}: loss {losses[0]:.3f} -> {losses[-1]:.3f}; {right:.0%} of 64 fresh pictures right")


if __name__ == "__main__":
    main()
