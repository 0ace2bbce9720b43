"""Random loops as written in JAX: scan, fori_loop, while_loop and vmap of a while_loop around bodies of 3 to 9 carried values and 1 to 40
ops, with keys split in every iteration and random draws. A seed is a program: `Drawn(seed).function()` and `.arguments()`. Iterations are
independent along the batch dimension."""
import functools
import random

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

UNARY = [jnp.tanh, jnp.sin, jnp.cos, jnp.abs, jnp.floor, jax.nn.sigmoid, jax.nn.relu, lambda x: -x, lambda x: x * x, lambda x: jnp.exp(-jnp.abs(x)),
         lambda x: jnp.sqrt(jnp.abs(x)), lambda x: jnp.log1p(jnp.abs(x))]  # fmt: skip
BINARY = [jnp.add, jnp.subtract, jnp.multiply, jnp.maximum, jnp.minimum, lambda x, y: x / (1 + jnp.abs(y)), jnp.arctan2]
WORDS = [jnp.add, jnp.subtract, jnp.multiply, jnp.bitwise_xor, jnp.bitwise_and, jnp.bitwise_or]
FORMS = ["scan", "scan", "fori", "while", "each", "lanes"]
POINTS, ITERATIONS = [4096, 16384, 65536, 262144], [200, 500, 1000]


class Pool:
    """Values of an iteration, by kind: `v` f32[n], `m` f32[n,k], `t` f32[k,n], `i` s32[n], `u` u32[n], `b` pred[n], `s` f32[]."""

    def __init__(self, r, n, k):
        self.r, self.n, self.k, self.of = r, n, k, {}
        self.takes_bits = False  # bits of floats, whose last digits are unspecified

    def put(self, kind, value):
        self.of.setdefault(kind, []).append(value)
        return value

    def pick(self, kind):
        if self.of.get(kind):
            return self.r.choice(self.of[kind])
        return self.put(kind, self.made(kind))

    def made(self, kind):
        """A value of the kind, derived from a vector."""
        v, k = self.r.choice(self.of["v"]), self.k
        if kind == "m":
            return jnp.stack([v * (1 + j) for j in range(k)], 1)
        if kind == "t":
            return jnp.broadcast_to(v, (k, self.n))
        if kind == "i":
            return jnp.clip(v * 100, -1e6, 1e6).astype(jnp.int32)
        if kind == "u":
            self.takes_bits = True
            return lax.bitcast_convert_type(v, jnp.uint32)
        if kind == "b":
            return v > 0.25
        return jnp.float32(0.5)


def bounded(r, x):
    """Keeps values bounded."""
    return r.choice([jnp.tanh, jnp.sin, lambda x: jnp.clip(x, -4, 4), lambda x: x / (1 + jnp.abs(x))])(x)


# ---- what an iteration may do


def unary(p):
    kind = p.r.choice("vvmts")
    p.put(kind, p.r.choice(UNARY)(p.pick(kind)))


def binary(p):
    kind = p.r.choice("vvvmts")
    p.put(kind, p.r.choice(BINARY)(p.pick(kind), p.pick(kind)))


def constant(p):
    p.put("v", p.pick("v") * p.r.choice([0.1, 0.5, 1.5]) + p.r.choice([-1.0, 0.02, 0.3]))


def words(p):
    kind = p.r.choice("iu")
    x, y = p.pick(kind), p.pick(kind)
    p.put(kind, p.r.choice([*WORDS, lambda x, y: x >> (y & 7), lambda x, y: x % (jnp.abs(y) | 1) if kind == "i" else x // (y | 1)])(x, y))


def compare(p):
    kind = p.r.choice("vvi")
    x, y = p.pick(kind), p.pick(kind)
    p.put("b", p.r.choice([x < y, x >= y, x != y]))


def select(p):
    kind, holds = p.r.choice("vvvimt"), p.pick("b")
    holds = {"m": holds[:, None], "t": holds[None, :]}.get(kind, holds)
    p.put(kind, jnp.where(holds, p.pick(kind), p.pick(kind)))


def converts(p):
    p.put("v", p.pick(p.r.choice("ib")).astype(jnp.float32))
    p.put("i", p.pick("b").astype(jnp.int32))


def column(p):
    if p.r.random() < 0.5:
        return p.put("v", p.pick("m")[:, p.r.randrange(p.k)])
    return p.put("v", p.pick("t")[p.r.randrange(p.k)])


def stack(p):
    if p.r.random() < 0.5:
        return p.put("m", jnp.stack([p.pick("v") for _ in range(p.k)], 1))
    return p.put("t", jnp.stack([p.pick("v") for _ in range(p.k)]))


def concatenate(p):
    m, cut = p.pick("m"), p.r.randrange(1, p.k)
    whole = jnp.concatenate([m[:, cut:], p.pick("m")[:, :cut]], 1)
    p.put("m", whole[:, ::-1] if p.r.random() < 0.3 else whole)


def transpose(p):
    if p.r.random() < 0.5:
        return p.put("t", p.pick("m").T)
    return p.put("m", p.pick("t").T)


def fold(p):
    kind = p.r.choice("mt")
    along, x = (1 if kind == "m" else 0), p.pick(kind)
    if p.r.random() < 0.25:
        return p.put("i", jnp.argmax(x, along).astype(jnp.int32))
    return p.put("v", p.r.choice([jnp.sum, jnp.max, jnp.min, jnp.mean, lambda x, a: jnp.linalg.norm(x, axis=a)])(x, along))


def running(p):
    p.put("m", p.r.choice([jnp.cumsum, lambda x, a: lax.cummax(x, a)])(p.pick("m"), 1))


def roll(p):
    p.put("m", jnp.roll(p.pick("m"), 1, 1))


def set_column(p):
    p.put("m", p.pick("m").at[:, p.r.randrange(p.k)].set(p.pick("v")))


def matrix(p):
    w = np.random.default_rng(p.r.randrange(1 << 30)).standard_normal((p.k, p.k)).astype(np.float32)
    p.put("m", jnp.dot(p.pick("m"), w, precision="highest") if p.r.random() < 0.7 else jnp.einsum("ij,kj->ik", p.pick("m"), w, precision="highest"))


def network(p):
    """Two layers with loop-invariant weights."""
    h = p.r.choice([8, 16, 32])
    w = np.random.default_rng(p.r.randrange(1 << 30))
    up, down = (w.standard_normal(s).astype(np.float32) / 4 for s in ((p.k, h), (h, p.k)))
    hidden = jnp.tanh(jnp.dot(p.pick("m"), up, precision="highest"))
    p.put("m", jnp.dot(hidden, down, precision="highest"))


def lookup(p):
    table = np.random.default_rng(p.r.randrange(1 << 30)).standard_normal(8).astype(np.float32)
    p.put("v", jnp.asarray(table)[p.pick("i") & 7])


def own_number(p):
    """The index of an element in its row, for each point."""
    return jnp.abs(p.pick("i")) % p.k


def pick_own(p):
    if p.r.random() < 0.5:
        return p.put("v", jnp.take_along_axis(p.pick("m"), own_number(p)[:, None], 1)[:, 0])
    return p.put("v", p.pick("m")[jnp.arange(p.n), own_number(p)])


def set_own(p):
    if p.r.random() < 0.5:
        return p.put("m", p.pick("m").at[jnp.arange(p.n), own_number(p)].set(p.pick("v")))
    return p.put("m", jax.vmap(lambda row, j, x: row.at[j].add(x))(p.pick("m"), own_number(p), p.pick("v")))


def by_counter(p):
    """A value selected by the iteration number: a number of a table, a column."""
    if p.r.random() < 0.5:
        table = np.random.default_rng(p.r.randrange(1 << 30)).standard_normal(16).astype(np.float32)
        return p.put("v", p.pick("v") * lax.dynamic_index_in_dim(jnp.asarray(table), p.counter % 16, keepdims=False))
    return p.put("m", p.pick("m").at[:, p.counter % p.k].set(p.pick("v")))


def clamp(p):
    p.put("v", jnp.clip(p.pick("v"), -4, 4))


def broadcast(p):
    p.put("v", p.pick("v") * p.pick("s"))


def bits(p):
    p.takes_bits = True
    p.put("u", lax.bitcast_convert_type(p.pick("v"), jnp.uint32) ^ p.pick("u"))


def narrow(p):
    kind = p.r.choice([jnp.bfloat16, jnp.float16])
    p.put("v", (p.pick("v").astype(kind) * p.pick("v").astype(kind)).astype(jnp.float32))


def inner(p):
    """An inner loop."""
    op, count = p.r.choice(BINARY), p.r.choice([2, 3, 5])
    if p.r.random() < 0.3:
        end = p.counter % 4
        return p.put("v", lax.while_loop(lambda c: c[0] < end, lambda c: (c[0] + 1, jnp.sin(op(c[1], c[1]))), (jnp.int32(0), p.pick("v")))[1])
    if p.r.random() < 0.5:
        return p.put("v", lax.fori_loop(0, count, lambda j, x: jnp.tanh(op(x, p.of["v"][0] + j)), p.pick("v")))
    return p.put("m", lax.fori_loop(0, count, lambda j, x: x.at[:, j % p.k].add(0.1), p.pick("m")))


def branch(p):
    one, other = p.r.choice(UNARY), p.r.choice(UNARY)
    p.put("v", lax.cond(p.counter % 3 < 1, one, other, p.pick("v")))


def costly(p):
    """An expensive value that few points use."""
    rare = p.pick("v")
    for _ in range(p.r.choice([3, 8, 16])):
        rare = p.r.choice([jnp.sin, jnp.cos, jnp.tanh])(rare) * 1.5
    p.put("v", jnp.where(p.pick("v") > 0.9, rare, p.pick("v")))


def draw(p):
    """A random draw with its own key."""
    p.key, own = jax.random.split(p.key)
    kind = p.r.randrange(6)
    if kind == 0:
        p.put("v", jax.random.uniform(own, (p.n,), minval=-1))
    elif kind == 1:
        p.put("v", jax.random.normal(own, (p.n,)))
    elif kind == 2:
        p.put("b", jax.random.bernoulli(own, 0.1, (p.n,)))
    elif kind == 3:
        p.put("i", jax.random.randint(own, (p.n,), 0, 17))
    elif kind == 4:
        p.put("m", jax.random.uniform(own, (p.n, p.k)))
    else:
        p.put("u", jax.random.bits(own, (p.n,)))


STEPS = [unary, unary, unary, binary, binary, binary, binary, constant, words, compare, select, select, converts, column, stack, concatenate,
         transpose, fold, running, roll, set_column, matrix, network, lookup, pick_own, set_own, by_counter, clamp, broadcast, bits, narrow, inner, branch, costly]  # fmt: skip


# ---- a program


class Drawn:
    """`small`: the same body with few points and iterations."""

    def __init__(self, seed, small=False):
        self.seed = seed
        r = random.Random(seed)
        self.n, self.trip_count = r.choice(POINTS), r.choice(ITERATIONS)
        self.k = r.choice([2, 3, 4, 6])
        self.form = r.choice(FORMS)
        self.ops = r.choice([1, 3, 5, 8, 12, 18, 25, 40])
        self.kinds = ["v", *r.choices("vvvmmtiubs", k=r.randint(1, 6))]
        self.draws = r.choice([0, 1, 1, 2, 3])
        self.reads = r.choice([0, 0, 1, 2]) if self.form == "scan" else 0
        self.writes = r.choice([0, 0, 1, 2]) if self.form == "scan" else 0
        # The rows of all iterations must fit into memory.
        if self.n * self.trip_count > 1 << 26:
            self.reads = self.writes = 0
        self.body_seed, self.takes_bits = r.randrange(1 << 30), False
        if small:
            self.n, self.trip_count = r.choice([5, 33, 70]), r.choice([2, 5])

    def __str__(self):
        carried = len(self.kinds) + 1 + (self.draws > 0)
        return f"{self.form} n={self.n} k={self.k} trips={self.trip_count} carries={carried} ops={self.ops} draws={self.draws} rows={self.reads}+{self.writes}"

    def body(self, points, counter, key, values, rows=()):
        """(key, values, stacked) of the next iteration."""
        r = random.Random(self.body_seed)
        p = Pool(r, points, self.k)
        p.counter, p.key = counter, key
        for kind, value in zip(self.kinds, values, strict=True):
            p.put(kind, value)
        for row in rows:
            p.put("v", row)
        for _ in range(self.draws):
            draw(p)
        for _ in range(self.ops):
            r.choice(STEPS)(p)
        self.takes_bits |= p.takes_bits
        following = []
        for kind in self.kinds:
            value = p.of[kind][-1] if r.random() < 0.7 else p.pick(kind)
            following.append(bounded(r, value) if kind in "vmts" else value)
        return p.key, following, [p.pick("v") for _ in range(self.writes)]

    @functools.cache  # noqa: B019 (there are few)
    def arguments(self):
        g = np.random.default_rng(self.seed)
        n, k = self.n, self.k
        make = {"v": lambda: g.standard_normal(n, np.float32), "m": lambda: g.standard_normal((n, k), np.float32),
                "t": lambda: g.standard_normal((k, n), np.float32), "i": lambda: g.integers(-99, 99, n, np.int32),
                "u": lambda: g.integers(0, 1 << 32, n, np.uint32), "b": lambda: g.random(n) < 0.5, "s": lambda: np.float32(0.7)}  # fmt: skip
        values = [make[kind]() for kind in self.kinds]
        rows = [g.standard_normal((self.trip_count, n), np.float32) for _ in range(self.reads)]
        own = g.integers(self.trip_count // 2, self.trip_count + 1, n, np.int32)
        return np.array([7, self.seed], np.uint32), values, rows, own if self.form == "each" else np.int32(self.trip_count)

    def function(self):
        def run(key, values, rows, end):
            return getattr(self, self.form + "_")(jax.random.wrap_key_data(key), values, rows, end)

        return run

    def scan_(self, key, values, rows, _):
        def step(carry, xs):
            i, key, values = carry
            key, values, ys = self.body(self.n, i, key, values, xs)
            return (i + 1, key, values), ys

        (_, key, values), ys = lax.scan(step, (jnp.int32(0), key, values), rows, length=self.trip_count)
        return jax.random.key_data(key), values, ys

    def fori_(self, key, values, _rows, _):
        key, values = lax.fori_loop(0, self.trip_count, lambda i, carry: self.body(self.n, i, *carry)[:2], (key, values))
        return jax.random.key_data(key), values

    def while_(self, key, values, _rows, end):
        """The trip count is known only at run time."""

        def step(carry):
            i, key, values = carry
            return (i + 1, *self.body(self.n, i, key, values)[:2])

        _, key, values = lax.while_loop(lambda c: c[0] < end, step, (jnp.int32(0), key, values))
        return jax.random.key_data(key), values

    def lanes_(self, key, values, _rows, end):
        """A program for one point under vmap: each has its own key."""
        return self.mapped(key, values, jnp.full(self.n, end), lambda end, step, start: lax.fori_loop(0, self.trip_count, lambda _, c: step(c), start))

    def each_(self, key, values, _rows, end):
        """Like lanes_, and each point has its own trip count."""
        return self.mapped(key, values, end, lambda end, step, start: lax.while_loop(lambda c: c[0] < end, step, start))

    def mapped(self, key, values, end, loop):
        batch_dims = {kind: 1 if kind == "t" else 0 for kind in "vmtiub"}  # the batch dimension of each kind

        def lone(key, values, end):
            def step(carry):
                i, key, values = carry
                grown = [x if kind == "s" else jnp.expand_dims(x, batch_dims[kind]) for kind, x in zip(self.kinds, values, strict=True)]
                key, values, _ = self.body(1, i, key, grown)
                return i + 1, key, [x if kind == "s" else jnp.squeeze(x, batch_dims[kind]) for kind, x in zip(self.kinds, values, strict=True)]

            _, key, values = loop(end, step, (jnp.int32(0), key, values))
            return jax.random.key_data(key), values

        given = [None if kind == "s" else batch_dims[kind] for kind in self.kinds]
        made = [batch_dims.get(kind, 0) for kind in self.kinds]
        return jax.vmap(lone, (0, given, 0), (0, made))(jax.random.split(key, self.n), values, end)
