"""Loops as users of JAX write them: simulations, solvers, samplers, filters, searches, small models. Each builder returns a function and
its arguments. `loose`: the result depends on last bits, so two compilers may differ."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

PROGRAMS = {}


def program(about, loose=False):
    def keep(make):
        make.__doc__, make.loose = about, loose
        PROGRAMS[make.__name__] = make
        return make

    return keep


def normal(seed, *shape, scale=1.0):
    return jnp.asarray(np.random.RandomState(seed).randn(*shape) * scale, jnp.float32)


def uniform(seed, low, high, *shape):
    return jnp.asarray(np.random.RandomState(seed).uniform(low, high, shape), jnp.float32)


def integers(seed, low, high, *shape):
    return jnp.asarray(np.random.RandomState(seed).randint(low, high, shape), jnp.int32)


# ---- environments


@program("pendulum, 512 at once, 500 steps, resets")
def pendulum():
    def step(carry, key):
        angle, speed, t = carry
        torque = random.uniform(key, angle.shape, minval=-2.0, maxval=2.0)
        speed = jnp.clip(speed + (15.0 * jnp.sin(angle) + 3.0 * torque) * 0.05, -8.0, 8.0)
        angle = angle + speed * 0.05
        cost = (((angle + jnp.pi) % (2 * jnp.pi)) - jnp.pi) ** 2 + 0.1 * speed**2 + 0.001 * torque**2
        done = t >= 199
        k1, k2 = random.split(key)
        angle = jnp.where(done, random.uniform(k1, angle.shape, minval=-jnp.pi, maxval=jnp.pi), angle)
        speed = jnp.where(done, random.uniform(k2, speed.shape, minval=-1.0, maxval=1.0), speed)
        return (angle, speed, jnp.where(done, 0, t + 1)), (-cost, done)

    def run(key, angle, speed):
        carry, (reward, done) = lax.scan(step, (angle, speed, jnp.zeros(angle.shape, jnp.int32)), random.split(key, 500))
        return carry, reward.sum(0), done

    return run, (random.PRNGKey(0), normal(0, 512), normal(1, 512))


@program("mountain car under vmap, 1,000 keys")
def mountain_car():
    def one(key, position):
        def body(_, carry):
            key, p, v, ends = carry
            key, now = random.split(key)
            action = random.randint(now, (), 0, 3)
            v = jnp.clip(v + (action - 1) * 0.001 + jnp.cos(3 * p) * (-0.0025), -0.07, 0.07)
            p = jnp.clip(p + v, -1.2, 0.6)
            v = jnp.where((p == -1.2) & (v < 0), 0.0, v)
            done = p >= 0.5
            return key, jnp.where(done, -0.5, p), jnp.where(done, 0.0, v), ends + done

        return lax.fori_loop(0, 300, body, (key, position, 0.0, 0))

    return jax.vmap(one), (random.split(random.PRNGKey(1), 1000), uniform(2, -0.6, -0.4, 1000))


@program("snake on 256 grids")
def snake():
    count, size = 256, 10

    def step(carry, key):
        position, food, grid, score = carry
        k1, k2 = random.split(key)
        action = random.randint(k1, (count,), 0, 4)
        position = (position + jnp.array([[0, 1], [0, -1], [1, 0], [-1, 0]])[action]) % size
        eats = (position == food).all(-1)
        food = jnp.where(eats[:, None], random.randint(k2, (count, 2), 0, size), food)
        grid = grid.at[jnp.arange(count), position[:, 0], position[:, 1]].add(1)
        return (position, food, grid, score + eats), eats

    def run(key, position, food):
        first = (position, food, jnp.zeros((count, size, size), jnp.int32), jnp.zeros(count, jnp.int32))
        return lax.scan(step, first, random.split(key, 100))

    return run, (random.PRNGKey(7), integers(3, 0, size, count, 2), integers(4, 0, size, count, 2))


@program("bandits, upper confidence bounds, 200 x 10 arms")
def bandit():
    arms, count, steps = 10, 200, 300

    def run(key, means):
        def step(carry, given):
            tries, sums = carry
            key, t = given
            bound = sums / jnp.maximum(tries, 1) + jnp.sqrt(2 * jnp.log(t + 1.0) / jnp.maximum(tries, 1))
            arm = jnp.where(tries > 0, bound, 1e9).argmax(1)
            reward = means[jnp.arange(count), arm] + random.normal(key, (count,))
            chosen = jax.nn.one_hot(arm, arms)
            return (tries + chosen, sums + chosen * reward[:, None]), reward

        first = (jnp.zeros((count, arms)), jnp.zeros((count, arms)))
        carry, reward = lax.scan(step, first, (random.split(key, steps), jnp.arange(steps)))
        return carry, reward.mean()

    return run, (random.PRNGKey(8), normal(5, count, arms))


@program("advantages (GAE), 1,000 steps of 64, backwards")
def advantages():
    def run(reward, value, done):
        def step(carry, given):
            reward, value, after, done = given
            carry = reward + 0.99 * after * (1 - done) - value + 0.99 * 0.95 * (1 - done) * carry
            return carry, carry

        after = jnp.concatenate([value[1:], jnp.zeros((1, value.shape[1]))])
        _, all_ = lax.scan(step, jnp.zeros(value.shape[1]), (reward, value, after, done), reverse=True)
        return (all_ - all_.mean()) / (all_.std() + 1e-8)

    return run, (normal(6, 1000, 64), normal(7, 1000, 64), (uniform(8, 0, 1, 1000, 64) < 0.02).astype(jnp.float32))


@program("value iteration until convergence", loose=True)
def value_iteration():
    def run(moves, reward):
        def body(carry):
            value, _, i = carry
            new = (reward + 0.95 * jnp.einsum("ast,t->sa", moves, value)).max(1)
            return new, jnp.abs(new - value).max(), i + 1

        return lax.while_loop(lambda c: (c[1] > 1e-4) & (c[2] < 500), body, (jnp.zeros(100), jnp.inf, 0))

    moves = uniform(9, 0, 1, 4, 100, 100)
    return run, (moves / moves.sum(-1, keepdims=True), normal(10, 100, 4))


# ---- equations


@program("adaptive Runge-Kutta, 256 equations with their own steps", loose=True)
def adaptive_ode():
    def slope(y):
        return jnp.stack([1.5 * y[0] - y[0] * y[1], y[0] * y[1] - 3.0 * y[1]])

    def solve(first):
        def body(carry):
            t, y, h, count = carry
            h = jnp.minimum(h, 10.0 - t)
            k1 = slope(y)
            k2 = slope(y + h * k1 / 2)
            k3 = slope(y + 3 * h * k2 / 4)
            third = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
            second = y + h * (7 * k1 / 24 + k2 / 4 + k3 / 3 + slope(third) / 8)
            error = jnp.max(jnp.abs(third - second) / (1e-5 + 1e-5 * jnp.abs(third)))
            good = error <= 1
            h_next = h * jnp.clip(0.9 * error ** (-1 / 3), 0.2, 5.0)
            return jnp.where(good, t + h, t), jnp.where(good, third, y), h_next, count + 1

        return lax.while_loop(lambda c: (c[0] < 10.0) & (c[3] < 2000), body, (0.0, first, 0.01, 0))

    return jax.vmap(solve), (uniform(11, 0.5, 3, 256, 2),)


@program("Lorenz equations, 2,000 steps of one point", loose=True)
def lorenz():
    def slope(y):
        return jnp.array([10.0 * (y[1] - y[0]), y[0] * (28.0 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])

    def step(y, _):
        k1 = slope(y)
        k2 = slope(y + 0.005 * k1)
        k3 = slope(y + 0.005 * k2)
        y = y + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + slope(y + 0.01 * k3))
        return y, y

    return lambda y: lax.scan(step, y, None, length=2000), (jnp.ones(3),)


@program("Newton's method, 50,000 roots, each until convergence")
def newton():
    def solve(a):
        def body(carry):
            x, _, n = carry
            d = (x**3 - a * x - 1.0) / (3 * x * x - a)
            return x - d, d, n + 1

        return lax.while_loop(lambda c: (jnp.abs(c[1]) > 1e-6) & (c[2] < 50), body, (2.0, 1.0, 0))

    return jax.vmap(solve), (uniform(12, 0.1, 5, 50000),)


@program("conjugate gradients on a grid of 128 x 128")
def conjugate_gradients():
    def apply(x):
        return 4.1 * x - jnp.roll(x, 1, 0) - jnp.roll(x, -1, 0) - jnp.roll(x, 1, 1) - jnp.roll(x, -1, 1)

    def run(b):
        def body(carry):
            x, r, p, square, k = carry
            q = apply(p)
            a = square / jnp.vdot(p, q)
            x, r = x + a * p, r - a * q
            new = jnp.vdot(r, r)
            return x, r, r + new / square * p, new, k + 1

        return lax.while_loop(lambda c: (c[3] > 1e-6) & (c[4] < 200), body, (jnp.zeros_like(b), b, b, jnp.vdot(b, b), 0))

    return run, (normal(13, 128, 128),)


@program("power iteration, nested loops")
def power_iteration():
    def run(a, x):
        def outer(x, _):
            def inner(_, x):
                y = a @ x
                return y / jnp.linalg.norm(y)

            x = lax.fori_loop(0, 10, inner, x)
            return x, x @ a @ x

        return lax.scan(outer, x, None, length=20)

    a = normal(14, 128, 128)
    return run, (a @ a.T, normal(15, 128))


@program("LU factorization in place, 120 x 120")
def lu():
    def run(a):
        row = jnp.arange(a.shape[0])

        def body(k, a):
            factor = jnp.where(row > k, a[:, k] / a[k, k], 0.0)
            a = a - factor[:, None] * jnp.where(row >= k, a[k], 0.0)[None]
            return a.at[:, k].set(jnp.where(row > k, factor, a[:, k]))

        return lax.fori_loop(0, a.shape[0] - 1, body, a)

    return run, (normal(16, 120, 120) + 12 * jnp.eye(120),)


@program("Mandelbrot set, 300 x 300 complex numbers, 100 iterations")
def mandelbrot():
    def run(c):
        def body(carry):
            z, n, i = carry
            z = z * z + c
            return z, n + (jnp.abs(z) < 2), i + 1

        return lax.while_loop(lambda c: c[2] < 100, body, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32), 0))[1]

    y, x = np.mgrid[-1.2:1.2:300j, -2:0.6:300j]
    return run, (jnp.asarray(x + 1j * y, jnp.complex64),)


@program("Sinkhorn distance, 200 x 200")
def sinkhorn():
    def run(cost):
        def body(_, carry):
            u, v = carry
            u = -jax.nn.logsumexp(-cost / 0.1 + v[None], axis=1)
            return u, -jax.nn.logsumexp(-cost / 0.1 + u[:, None], axis=0)

        return lax.fori_loop(0, 50, body, (jnp.zeros(200), jnp.zeros(200)))

    return run, (uniform(17, 0, 1, 200, 200),)


# ---- samplers


@program("rejection sampling, 4,096 keys, each until acceptance")
def rejection():
    def one(key):
        def body(carry):
            key, k1, k2 = random.split(carry[0], 3)
            x = random.uniform(k1) * 4 - 2
            return key, x, random.uniform(k2) < jnp.exp(-x * x)

        return lax.while_loop(lambda c: ~c[2], body, (key, 0.0, False))[1]

    return jax.vmap(one), (random.split(random.PRNGKey(2), 4096),)


@program("Metropolis sampling of a 64 x 64 Ising grid")
def ising():
    def run(key, spins):
        black = (jnp.indices(spins.shape).sum(0) % 2).astype(bool)

        def sweep(s, key):
            for colour in (black, ~black):
                key, now = random.split(key)
                around = jnp.roll(s, 1, 0) + jnp.roll(s, -1, 0) + jnp.roll(s, 1, 1) + jnp.roll(s, -1, 1)
                taken = random.uniform(now, s.shape) < jnp.exp(-0.88 * s * around)
                s = jnp.where(taken & colour, -s, s)
            return s, s.mean()

        return lax.scan(sweep, spins, random.split(key, 100))

    return run, (random.PRNGKey(3), integers(18, 0, 2, 64, 64).astype(jnp.float32) * 2 - 1)


@program("Hamiltonian Monte Carlo, 128 chains, nested leapfrog loop")
def hamiltonian():
    def log_density(x):
        return -0.5 * jnp.sum(x**2 / jnp.array([1.0, 4.0, 0.25, 9.0])) - 0.1 * x[0] ** 2 * x[1] ** 2

    slope = jax.grad(log_density)

    def chain(key, x):
        def step(carry, key):
            x, taken = carry
            k1, k2 = random.split(key)
            p = random.normal(k1, x.shape)

            def leap(_, state):
                x, p = state
                p = p + 0.05 * slope(x)
                x = x + 0.1 * p
                return x, p + 0.05 * slope(x)

            x_new, p_new = lax.fori_loop(0, 10, leap, (x, p))
            change = log_density(x_new) - 0.5 * p_new @ p_new - log_density(x) + 0.5 * p @ p
            good = jnp.log(random.uniform(k2)) < change
            return (jnp.where(good, x_new, x), taken + good), x

        return lax.scan(step, (x, 0), random.split(key, 100))

    return jax.vmap(chain), (random.split(random.PRNGKey(4), 128), normal(19, 128, 4))


@program("particle filter, 1,000 particles with resampling", loose=True)
def particle_filter():
    count, steps = 1000, 100

    def run(key, seen):
        def step(x, given):
            key, y = given
            k1, k2 = random.split(key)
            x = 0.5 * x + 25 * x / (1 + x * x) + random.normal(k1, x.shape) * 3
            weight = jax.nn.softmax(-0.5 * (y - x * x / 20) ** 2)
            at = jnp.searchsorted(jnp.cumsum(weight), (jnp.arange(count) + random.uniform(k2)) / count)
            x = x[jnp.clip(at, 0, count - 1)]
            return x, x.mean()

        return lax.scan(step, jnp.zeros(count), (random.split(key, steps), seen))

    return run, (random.PRNGKey(5), normal(20, steps))


import loop_models  # noqa: E402,F401  adds its own
