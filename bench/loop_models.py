"""More loops as users of JAX write them (loop_programs.py): filters, models, searches, and loops that do not fit into one kernel."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random
from loop_programs import integers, normal, program, uniform

# ---- filters and models


@program("Kalman filter, 4 states, 500 steps, with a linear solve")
def kalman():
    move = jnp.asarray(np.eye(4) + 0.1 * np.eye(4, k=2), jnp.float32)
    see = jnp.eye(2, 4)

    def run(seen):
        def step(carry, z):
            x, p = carry
            x = move @ x
            p = move @ p @ move.T + 0.01 * jnp.eye(4)
            gain = jnp.linalg.solve(see @ p @ see.T + 0.1 * jnp.eye(2), see @ p).T
            x = x + gain @ (z - see @ x)
            return (x, (jnp.eye(4) - gain @ see) @ p), x

        return lax.scan(step, (jnp.zeros(4), jnp.eye(4)), seen)

    return run, (normal(21, 500, 2),)


@program("300 Kalman filters of 2 states under vmap")
def kalman_batch():
    def one(seen):
        def step(carry, z):
            x, p = carry
            move = jnp.array([[1.0, 0.1], [0.0, 1.0]])
            x = move @ x
            p = move @ p @ move.T + 0.01 * jnp.eye(2)
            s = p + 0.1 * jnp.eye(2)
            inverse = jnp.array([[s[1, 1], -s[0, 1]], [-s[1, 0], s[0, 0]]]) / (s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0])
            gain = p @ inverse
            x = x + gain @ (z - x)
            return (x, (jnp.eye(2) - gain) @ p), x

        return lax.scan(step, (jnp.zeros(2), jnp.eye(2)), seen)

    return jax.vmap(one), (normal(22, 300, 200, 2),)


@program("recursive filter, 100,000 samples")
def recursive_filter():
    def step(carry, x):
        y1, y2, x1, x2 = carry
        y = 0.2 * x + 0.3 * x1 + 0.2 * x2 + 0.5 * y1 - 0.2 * y2
        return (y, y1, x, x1), y

    return lambda x: lax.scan(step, (0.0, 0.0, 0.0, 0.0), x)[1], (normal(23, 100000),)


@program("RNN with attention over 40 memories, 50 steps")
def rnn_attention():
    batch, width = 16, 64

    def run(weights, memory, inputs):
        def step(h, x):
            score = jnp.einsum("bd,bmd->bm", h @ weights["q"], memory) / 8.0
            context = jnp.einsum("bm,bmd->bd", jax.nn.softmax(score), memory)
            h = jnp.tanh(jnp.concatenate([x, context, h], -1) @ weights["w"] + weights["b"])
            return h, h

        return lax.scan(step, jnp.zeros((batch, width)), inputs)

    weights = {"q": normal(24, width, width, scale=0.1), "w": normal(25, 3 * width, width, scale=0.1), "b": jnp.zeros(width)}
    return run, (weights, normal(26, batch, 40, width), normal(27, 50, batch, width))


@program("GRU that samples 100 letters, batch of 4")
def gru_sample():
    letters, width, batch = 100, 128, 4

    def run(w, key):
        def step(carry, key):
            h, letter = carry
            x = w["embed"][letter]
            z = jax.nn.sigmoid(x @ w["wz"] + h @ w["uz"])
            r = jax.nn.sigmoid(x @ w["wr"] + h @ w["ur"])
            h = (1 - z) * jnp.tanh(x @ w["wn"] + (r * h) @ w["un"]) + z * h
            letter = random.categorical(key, h @ w["out"])
            return (h, letter), letter

        return lax.scan(step, (jnp.zeros((batch, width)), jnp.zeros(batch, jnp.int32)), random.split(key, 100))

    w = {name: normal(28 + i, width, width, scale=0.1) for i, name in enumerate(("wz", "uz", "wr", "ur", "wn", "un"))}
    w |= {"embed": normal(34, letters, width), "out": normal(35, width, letters, scale=0.1)}
    return run, (w, random.PRNGKey(6))


@program("Adam, 100 steps of a small network")
def adam():
    def run(weights, x, y):
        def loss(w):
            return jnp.mean((jnp.tanh(x @ w[0] + w[1]) @ w[2] + w[3] - y) ** 2)

        def step(carry, t):
            w, m, v = carry
            now, slope = jax.value_and_grad(loss)(w)
            m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, slope)
            v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, slope)
            w = jax.tree.map(lambda w, m, v: w - 1e-2 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), w, m, v)
            return (w, m, v), now

        zero = jax.tree.map(jnp.zeros_like, weights)
        return lax.scan(step, (weights, zero, zero), jnp.arange(1.0, 101.0))

    x = normal(36, 256, 10)
    weights = [normal(37, 10, 32, scale=0.3), jnp.zeros(32), normal(38, 32, 1, scale=0.3), jnp.zeros(1)]
    return run, (weights, x, jnp.sin(x.sum(1, keepdims=True)))


@program("k-means, 16 clusters of 5,000 points, by matrix products")
def kmeans():
    def run(x, centres):
        def step(c, _):
            squared_distance = ((x[:, None] - c[None]) ** 2).sum(-1)
            own = jax.nn.one_hot(squared_distance.argmin(1), c.shape[0])
            return (own.T @ x) / jnp.maximum(own.sum(0)[:, None], 1), squared_distance.min(1).sum()

        return lax.scan(step, centres, None, length=30)

    x = normal(39, 5000, 8)
    return run, (x, x[:16])


@program("k-means by segment sums")
def kmeans_segments():
    def run(x, centres):
        def step(c, _):
            own = ((x[:, None] - c[None]) ** 2).sum(-1).argmin(1)
            count = jax.ops.segment_sum(jnp.ones(len(x)), own, c.shape[0])
            return jax.ops.segment_sum(x, own, c.shape[0]) / jnp.maximum(count, 1)[:, None], count

        return lax.scan(step, centres, None, length=30)

    x = normal(39, 5000, 8)
    return run, (x, x[:16])


@program("belief propagation on a grid of 64 x 64, 5 states")
def belief_propagation():
    size, states = 64, 5

    def run(own, pair):
        def turn(_, messages):
            belief = own + messages.sum(0)

            def sent(back, by, axis):
                x = belief - messages[back]
                out = jax.nn.logsumexp(pair[None, None] + x[..., :, None], axis=-2)
                return jnp.roll(out - out.max(-1, keepdims=True), by, axis)

            return jnp.stack([sent(1, 1, 0), sent(0, -1, 0), sent(3, 1, 1), sent(2, -1, 1)])

        return lax.fori_loop(0, 20, turn, jnp.zeros((4, size, size, states)))

    return run, (normal(40, size, size, states), normal(41, states, states))


# ---- searches and integers


@program("beam search, 8 beams, 500 words")
def beam_search():
    words, beams, length = 500, 8, 30

    def run(table):
        def step(carry, _):
            found, score, last, t = carry
            all_ = score[:, None] + jax.nn.log_softmax(table[last])
            score, at = lax.top_k(all_.reshape(-1), beams)
            found = found[at // words].at[:, t].set(at % words)
            return (found, score, at % words, t + 1), None

        first = (jnp.zeros((beams, length), jnp.int32), jnp.where(jnp.arange(beams) == 0, 0.0, -1e9), jnp.zeros(beams, jnp.int32), 0)
        carry, _ = lax.scan(step, first, None, length=length)
        return carry[0], carry[1]

    return run, (normal(42, words, words),)


@program("Viterbi path with backtracking, 32 states, 200 steps")
def viterbi():
    def run(move, seen):
        def forward(d, now):
            m = d[:, None] + move
            return m.max(0) + now, m.argmax(0)

        d, best = lax.scan(forward, seen[0], seen[1:])
        _, path = lax.scan(lambda s, b: (b[s], s), d.argmax(), best, reverse=True)
        return path, d

    return run, (normal(43, 32, 32), normal(44, 200, 32))


@program("binary search of 20,000 keys in 100,000 numbers")
def binary_search():
    def run(a, q):
        def body(carry):
            low, high = carry
            middle = (low + high) // 2
            less, open_ = a[middle] < q, low < high
            return jnp.where(less & open_, middle + 1, low), jnp.where(~less & open_, middle, high)

        first = (jnp.zeros(q.shape, jnp.int32), jnp.full(q.shape, a.shape[0], jnp.int32))
        return lax.while_loop(lambda c: jnp.any(c[0] < c[1]), body, first)[0]

    return run, (jnp.sort(normal(45, 100000)), normal(46, 20000))


@program("Levenshtein distances of 64 pairs, nested scans")
def levenshtein():
    def distance(a, b):
        def row(before, letter):
            def column(left, given):
                up, corner, other = given
                value = jnp.minimum(jnp.minimum(left + 1, up + 1), corner + (letter != other))
                return value, value

            first = before[0] + 1
            _, rest = lax.scan(column, first, (before[1:], before[:-1], b))
            return jnp.concatenate([first[None], rest]), None

        return lax.scan(row, jnp.arange(b.shape[0] + 1), a)[0][-1]

    return jax.vmap(distance), (integers(47, 0, 4, 64, 60), integers(48, 0, 4, 64, 60))


@program("Collatz sequences of 20,000 numbers")
def collatz():
    def one(n):
        return lax.while_loop(lambda c: c[0] != 1, lambda c: (jnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1), (n, 0))[1]

    return jax.vmap(one), (jnp.arange(1, 20001, dtype=jnp.int32),)


@program("sieve of 20,000 numbers by remainders")
def sieve():
    def run(n):
        number = jnp.arange(20000) + n
        first = jnp.ones(20000, bool).at[:2].set(False)
        return lax.fori_loop(2, 142, lambda i, s: jnp.where(s[i] & (number % i == 0) & (number > i), False, s), first)

    return run, (jnp.int32(0),)


@program("Floyd-Warshall shortest paths, 150 x 150")
def shortest_paths():
    def run(d):
        return lax.fori_loop(0, d.shape[0], lambda k, d: jnp.minimum(d, d[:, k][:, None] + d[k][None]), d)

    return run, (uniform(49, 0, 10, 150, 150),)


@program("game of life, 256 x 256, 100 iterations")
def game_of_life():
    def step(_, g):
        around = sum(jnp.roll(jnp.roll(g, x, 0), y, 1) for x in (-1, 0, 1) for y in (-1, 0, 1) if (x, y) != (0, 0))
        return ((around == 3) | ((g == 1) & (around == 2))).astype(jnp.int32)

    return lambda g: lax.fori_loop(0, 100, step, g), (integers(50, 0, 2, 256, 256),)


# ---- what does not fit


@program("64 lanes with 3,000 carried values each")
def huge_carry():
    def run(x):
        return lax.scan(lambda c, t: (jnp.tanh(c * 0.99 + jnp.roll(c, 1, axis=1) * 0.01 * t), c[:, 0]), x, jnp.linspace(0, 1, 100))

    return run, (normal(51, 64, 3000),)


@program("200 carried arrays")
def many_carries():
    def run(xs):
        def step(c, t):
            return [jnp.sin(c[i] + 0.1 * c[(i + 1) % len(c)] * t) for i in range(len(c))], None

        return lax.scan(step, xs, jnp.linspace(0, 1, 50))[0]

    return run, ([normal(52 + i, 256) for i in range(200)],)


@program("a Python callback in each of 20 iterations")
def callback():
    def run(x):
        def body(_, x):
            return jnp.sin(jax.pure_callback(lambda v: np.asarray(v) * np.float32(2), jax.ShapeDtypeStruct(x.shape, x.dtype), x))

        return lax.fori_loop(0, 20, body, x)

    return run, (normal(300, 1000),)
