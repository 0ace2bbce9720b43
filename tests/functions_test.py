#!/usr/bin/env python3
"""Compares the interpreter's functions with mpmath, over their ranges and at the ends of them.

    tests/functions_test.py build/bin/tokamak [--worst]

Bounds (docs/numerics.md; the reference interpreter has tighter ones than backends): f32 and narrower 1 ulp, f64
4 ulp, complex 8 ulp of the modulus, gamma-like functions 8 ulp of max(|f|, 1). --worst prints the
largest error of each function.
"""
import cmath
import math
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import mpmath
    import numpy as np
except ImportError as error:
    print(f"skipped: {error} (scripts/bootstrap makes a .venv that has mpmath and NumPy)")
    sys.exit(77)

mp = mpmath.mp
mp.dps = 50
mpf, mpc = mpmath.mpf, mpmath.mpc
NAMES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}
MLIR = {"f32": "f32", "f64": "f64", "c64": "complex<f32>", "c128": "complex<f64>"}


def expm1(x):
    return mpmath.expm1(x)


def log1p(x):
    if isinstance(x, mpf):
        return mpmath.log1p(x)
    with mp.workdps(120):
        return mpmath.log(1 + x)


def logistic(x):
    return 1 / (1 + mpmath.exp(-x))


def lgamma(x):
    return mpmath.log(abs(mpmath.gamma(x))) if x < 1e4 else mpmath.loggamma(x)


def i1e(x):
    with mp.workdps(80):
        return mpmath.besseli(1, x) * mpmath.exp(-abs(x))


def polygamma(n, x):
    return mpmath.polygamma(int(n), x)


# Op, function, range of real arguments: (low, high) uniformly, or "log" over all magnitudes.
UNARY = {
    "stablehlo.exponential": (mpmath.exp, [(-104, 90), (-1, 1), "log"]),
    "stablehlo.exponential_minus_one": (expm1, [(-20, 80), (-1, 1), "log"]),
    "stablehlo.log": (mpmath.log, [(0, 3), (0.9, 1.1), "log+"]),
    "stablehlo.log_plus_one": (log1p, [(-1, 3), "log+"]),
    "stablehlo.logistic": (logistic, [(-100, 100), (-1, 1)]),
    "stablehlo.sqrt": (mpmath.sqrt, ["log+"]),
    "stablehlo.rsqrt": (lambda x: 1 / mpmath.sqrt(x), ["log+"]),
    "stablehlo.cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), ["log"]),
    "stablehlo.sine": (mpmath.sin, [(-10, 10), "log"]),
    "stablehlo.cosine": (mpmath.cos, [(-10, 10), "log"]),
    "stablehlo.tan": (mpmath.tan, [(-10, 10), "log"]),
    "stablehlo.tanh": (mpmath.tanh, [(-20, 20), (-1, 1)]),
    "chlo.acos": (mpmath.acos, [(-1, 1)]),
    "chlo.acosh": (mpmath.acosh, [(1, 3), "log1"]),
    "chlo.asin": (mpmath.asin, [(-1, 1)]),
    "chlo.asinh": (mpmath.asinh, [(-5, 5), "log"]),
    "chlo.atan": (mpmath.atan, [(-5, 5), "log"]),
    "chlo.atanh": (mpmath.atanh, [(-1, 1)]),
    "chlo.sinh": (mpmath.sinh, [(-85, 85), (-1, 1)]),
    "chlo.cosh": (mpmath.cosh, [(-85, 85), (-1, 1)]),
    "chlo.erf": (mpmath.erf, [(-6, 6), (-0.1, 0.1)]),
    "chlo.erfc": (mpmath.erfc, [(-6, 9), (-0.1, 0.1)]),
    "chlo.erf_inv": (mpmath.erfinv, [(-1, 1)]),
    "chlo.lgamma": (lgamma, [(-20, 20), (0, 3), "log1"]),
    "chlo.digamma": (mpmath.digamma, [(-20, 20), (0, 3), "log1"]),
    "chlo.bessel_i1e": (i1e, [(-50, 50), (-1, 1)]),
    "chlo.square": (lambda x: x * x, [(-9, 9)]),
}
GAMMA_LIKE = {"chlo.lgamma", "chlo.digamma", "chlo.polygamma", "chlo.zeta"}
BINARY = {
    "stablehlo.power": (lambda x, y: x**y, (0, 10), (-20, 20)),
    "stablehlo.atan2": (mpmath.atan2, (-5, 5), (-5, 5)),
    "stablehlo.divide": (lambda x, y: x / y, (-5, 5), (-5, 5)),
    "chlo.zeta": (mpmath.zeta, (1.001, 40), (0.01, 60)),
    "chlo.polygamma": (polygamma, "0-6", (0.05, 60)),
}
COMPLEX = {
    "stablehlo.exponential": mpmath.exp,
    "stablehlo.exponential_minus_one": expm1,
    "stablehlo.log": mpmath.log,
    "stablehlo.log_plus_one": log1p,
    "stablehlo.logistic": logistic,
    "stablehlo.sqrt": mpmath.sqrt,
    "stablehlo.rsqrt": lambda z: 1 / mpmath.sqrt(z),
    "stablehlo.sine": mpmath.sin,
    "stablehlo.cosine": mpmath.cos,
    "stablehlo.tan": mpmath.tan,
    "stablehlo.tanh": mpmath.tanh,
    "chlo.acos": mpmath.acos,
    "chlo.acosh": mpmath.acosh,
    "chlo.asin": mpmath.asin,
    "chlo.asinh": mpmath.asinh,
    "chlo.atan": mpmath.atan,
    "chlo.atanh": mpmath.atanh,
    "chlo.sinh": mpmath.sinh,
    "chlo.cosh": mpmath.cosh,
    "chlo.square": lambda z: z * z,
}


def sqrt_on_its_cut(z):
    """-0 counts as 0 there: XLA's expansion of the square root tests y < 0."""
    return cmath.sqrt(complex(z.real, abs(z.imag)) if z.imag == 0 else z)


# Functions of Python's cmath, which follow C99's Annex G in branch cuts and signed zeros.
CUTS = {"stablehlo.log": cmath.log, "stablehlo.sqrt": sqrt_on_its_cut, "chlo.acos": cmath.acos,
        "chlo.acosh": cmath.acosh, "chlo.asin": cmath.asin, "chlo.asinh": cmath.asinh,
        "chlo.atan": cmath.atan, "chlo.atanh": cmath.atanh}


def draw(rng, where, dtype, count):
    """`count` numbers of a real type."""
    info = np.finfo(dtype)
    if isinstance(where, str) and where.startswith("log"):
        low, high = math.log2(float(info.smallest_subnormal)), math.log2(float(info.max))
        low = 0 if where == "log1" else low
        with np.errstate(over="ignore", under="ignore"):
            x = np.exp2(rng.uniform(low, high - 1e-3, count)).astype(dtype)
        return x * rng.choice([-1, 1], count).astype(dtype) if where == "log" else x
    return rng.uniform(*where, count).astype(dtype)


def ends(where, dtype):
    """The largest, smallest and simplest numbers in a range."""
    info = np.finfo(dtype)
    values = [info.max, info.tiny, info.smallest_subnormal, info.eps, 1, 2, 0.5, 1 - info.epsneg, 1 + info.eps]
    values = np.array(values + [-v for v in values], dtype)
    if where == "log":
        return values
    low, high = {"log+": (0, info.max), "log1": (1, info.max)}.get(where, where)
    return values[(values >= low) & (values <= high)]


def run(tokamak, folder, kind, ops, inputs):
    """The results of one program that applies each op to its own inputs."""
    arguments, lines, results, types = [], [], [], []
    arrays = {}
    for i, (op, operands) in enumerate(zip(ops, inputs)):
        tensor = f"tensor<{len(operands[0])}x{MLIR[kind]}>"
        names = []
        for operand in operands:
            name = f"%a{len(arguments)}"
            arrays[f"in_{len(arguments)}"] = operand
            arguments.append(f"{name}: {tensor}")
            names.append(name)
        lines.append(f'    %r{i} = "{op}"({", ".join(names)}) : ({", ".join([tensor] * len(names))}) -> {tensor}')
        results.append(f"%r{i}")
        types.append(tensor)
    text = (f"func.func @main({', '.join(arguments)}) -> ({', '.join(types)}) {{\n" + "\n".join(lines) +
            f"\n    func.return {', '.join(results)} : {', '.join(types)}\n}}\n")
    program = folder / f"{kind}.mlir"
    program.write_text(text)
    np.savez(folder / "in.npz", **arrays)
    command = [tokamak, "run", str(program), "--backend", "interp", "--inputs", str(folder / "in.npz"),
               "--outputs", str(folder / "out.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        sys.exit(f"functions_test: {' '.join(command)}\n{done.stdout}{done.stderr}")
    out = np.load(folder / "out.npz")
    return [out[f"out_{i}"] for i in range(len(ops))]


def ulp(value, dtype):
    """One unit in the last place of a type, at a value."""
    info = np.finfo(dtype)
    if value == 0:
        return mpf(float(info.smallest_subnormal))
    exponent = int(mpmath.floor(mpmath.log(abs(value), 2)))
    return mpf(2) ** max(exponent - info.nmant, int(info.minexp) - info.nmant)


def ulps_off(op, got, exact, dtype):
    info = np.finfo(dtype)
    if isinstance(exact, mpc) and not np.iscomplexobj(got):
        exact = mpf("nan")
    if not np.isfinite(got):
        return 0 if abs(exact) >= mpf(float(info.max)) else math.inf
    if not mpmath.isfinite(exact):
        return math.inf
    if abs(exact) > mpf(float(info.max)):
        return 0 if abs(got) >= info.max else math.inf
    got = mpc(complex(got)) if np.iscomplexobj(got) else mpf(float(got))
    scale = max(abs(exact), 1) if op in GAMMA_LIKE else abs(exact)
    return float(abs(got - exact) / ulp(scale, dtype))


def main():
    worst = "--worst" in sys.argv
    words = [w for w in sys.argv[1:] if not w.startswith("-")]
    tokamak = words[0] if words else "build/bin/tokamak"
    rng = np.random.default_rng(7)
    failures, tried = [], 0

    def check_result(kind, op, operands, got, fn, bound):
        nonlocal tried
        dtype = np.finfo(NAMES[kind]).dtype
        most, at = 0.0, None
        for i, value in enumerate(got):
            arguments = [mpc(complex(o[i])) if np.iscomplexobj(o) else mpf(float(o[i])) for o in operands]
            try:
                exact = fn(*arguments)
            except (ValueError, ZeroDivisionError, OverflowError, mpmath.libmp.NoConvergence):
                continue
            off = ulps_off(op, value, exact, dtype)
            tried += 1
            if off > most:
                most, at = off, (i, exact)
        if worst:
            print(f"{kind:5} {op:32} {most:8.3f} ulp")
        if most > bound:
            i, exact = at
            failures.append(f"{kind} {op}({', '.join(repr(o[i]) for o in operands)}) = {got[i]!r}, "
                            f"exactly {mpmath.nstr(exact, 20)}: {most:.3g} ulp, allowed are {bound}")

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, bound in (("f32", 1), ("f64", 4)):
            dtype = NAMES[kind]
            ops, inputs, fns = [], [], []
            for op, (fn, ranges) in UNARY.items():
                parts = [np.concatenate([draw(rng, r, dtype, 40), ends(r, dtype)]) for r in ranges]
                ops.append(op), inputs.append([np.concatenate(parts)]), fns.append(fn)
            for op, (fn, xs, ys) in BINARY.items():
                x = rng.integers(0, 7, 60).astype(dtype) if xs == "0-6" else draw(rng, xs, dtype, 60)
                ops.append(op), inputs.append([x, draw(rng, ys, dtype, 60)]), fns.append(fn)
            for op, operands, got, fn in zip(ops, inputs, run(tokamak, folder, kind, ops, inputs), fns):
                check_result(kind, op, operands, got, fn, 8 if op in GAMMA_LIKE else bound)
        for kind in ("c64", "c128"):
            part = np.finfo(NAMES[kind]).dtype
            ops, inputs = [], []
            for op in COMPLEX:
                x = np.concatenate([draw(rng, (-3, 3), part, 40), draw(rng, (-0.01, 0.01), part, 20),
                                    draw(rng, (0.9, 1.1), part, 20)])
                y = np.concatenate([draw(rng, (-3, 3), part, 40), draw(rng, (-0.01, 0.01), part, 40)])
                ops.append(op), inputs.append([(x + 1j * y).astype(NAMES[kind])])
            for op, operands, got in zip(ops, inputs, run(tokamak, folder, kind, ops, inputs)):
                check_result(kind, op, operands, got, COMPLEX[op], 8)
        # On the branch cuts: both signs of zero next to real and imaginary numbers.
        edge = [complex(x, y) for x in (-2.0, -0.5, -0.0, 0.0, 0.5, 2.0) for y in (0.0, -0.0)]
        edge += [complex(x, y) for y in (-2.0, -0.5, 0.5, 2.0) for x in (0.0, -0.0)]
        array = np.array(edge, np.complex128)
        for (op, fn), got in zip(CUTS.items(), run(tokamak, folder, "c128", list(CUTS), [[array]] * len(CUTS))):
            for z, value in zip(edge, got):
                if z == 0 and op == "stablehlo.log":
                    continue
                exact = fn(z)
                tried += 1
                near = abs(value - exact) <= 1e-14 * abs(exact)
                signs = all(math.copysign(1, a) == math.copysign(1, b)
                            for a, b in ((value.real, exact.real), (value.imag, exact.imag)))
                if not near or not signs:
                    failures.append(f"c128 {op}({z}) = {value}, by Annex G {exact}")
    for failure in failures:
        print(failure)
    print(f"functions: {tried - len(failures)} of {tried} values within their bounds")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
