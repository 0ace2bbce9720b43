#!/usr/bin/env python3
"""Fits the polynomials of src/kernel/formulas and prints them as C++ with the error of each fit.

    tools/fit_formulas.py [NAME...]

A row gives a function g, the range of its argument, a degree and the weight of an error of g in the
result. The polynomial interpolates g at the roots of a Chebyshev polynomial, which is within a factor of two of
the optimum; coefficients are then rounded to the type that uses them. Rows of BEST minimize the largest weighted
error, where each degree counts (Lawson's algorithm: iterated least squares, with the weights of points moved to
where the error is). QUOTIENTS are fits by the quotient of two polynomials, with the least relative error.
"""
import sys

import mpmath
from mpmath import mpf

mpmath.mp.dps = 60
TINY = mpf(10) ** -20
SQRT_HALF, LN2 = mpmath.sqrt(mpf(1) / 2), mpmath.log(2)


def series(f, terms, power):
    """(f(x) - the first terms) / x^power, with enough digits for the cancellation."""
    def g(x):
        if abs(x) < mpf(10) ** -30:
            x = mpf(10) ** -30
        with mpmath.workdps(220):
            return (f(x) - sum(c * x ** k for k, c in terms)) / x ** power
    return g


def of_square(g):
    return lambda u: g(mpmath.sqrt(u))


def erfcx(x):
    return mpmath.erfc(x) * mpmath.exp(x * x)


def erfinv_over_x(w):
    """erfinv(x) / x as a function of w = -log(1 - x^2)."""
    x = mpmath.sqrt(-mpmath.expm1(-max(w, mpf(10) ** -30)))
    with mpmath.workdps(40):
        y = mpmath.erfinv(x) if w < 5 else erfinv_near_one(w)
    return y / x


def erfinv_near_one(w):
    """erfc(y) = 1 - x = e^-w / (1 + x), by Newton's method on the logarithm."""
    target = -w - mpmath.log(1 + mpmath.sqrt(-mpmath.expm1(-w)))
    y = mpmath.sqrt(w)
    for _ in range(30):
        value = mpmath.log(mpmath.erfc(y)) - target
        y += value * mpmath.erfc(y) * mpmath.exp(y * y) * mpmath.sqrt(mpmath.pi) / 2
    return y


def i1e(x):
    x = max(x, mpf(10) ** -20)
    if x > 1000:  # beyond the largest argument of a fit, near its limit
        return sum((-1) ** k * i1e_term(k) / x ** k for k in range(8)) / mpmath.sqrt(2 * mpmath.pi * x)
    with mpmath.workdps(60):
        return mpmath.besseli(1, x) * mpmath.exp(-x)


def i1e_over(x):
    return i1e(x + TINY) / (x + TINY)


def i1e_term(k):
    product = mpf(1)
    for j in range(1, k + 1):
        product *= mpf(4 - (2 * j - 1) ** 2) / (8 * j)
    return product


# name: g, low, high, degree, weight of an error of g at x in units of the result, bits of the type
FITS = {
    "exp32": (series(mpmath.exp, [(0, 1), (1, 1)], 2), -LN2 / 2, LN2 / 2, 5, lambda r: r, 24),
    "exp64": (series(mpmath.exp, [(0, 1), (1, 1)], 2), -LN2 / 2, LN2 / 2, 10, lambda r: r, 53),
    "log32": (series(lambda f: mpmath.log(1 + f), [(1, 1), (2, mpf(-1) / 2)], 3), SQRT_HALF - 1, 2 * SQRT_HALF - 1, 7,
              lambda f: f * f, 24),
    "log64": (of_square(series(lambda s: 2 * mpmath.atanh(s), [(1, 2)], 3)), mpf(0), mpf("0.02944"), 6,
              lambda u: u / 2, 53),
    "log_pow": (of_square(series(lambda s: 2 * mpmath.atanh(s), [(1, 2), (3, mpf(2) / 3)], 5)), mpf(0), mpf("0.02944"), 7,
                lambda u: u * u / 2, 53),
    "log_pow32": (of_square(series(lambda s: 2 * mpmath.atanh(s), [(1, 2)], 3)), mpf(0), mpf("0.02944"), 4,
                  lambda u: u / 2, 53),
    "exp_pow32": (series(mpmath.exp, [(0, 1), (1, 1)], 2), -LN2 / 2, LN2 / 2, 5, lambda r: r, 53),
    "tanh32": (of_square(series(mpmath.tanh, [(1, 1)], 3)), mpf(0), mpf("0.36"), 4, lambda u: u, 24),
    "sin32": (of_square(series(mpmath.sin, [(1, 1)], 3)), mpf(0), mpf("0.62"), 2, lambda u: u, 24),
    "cos32": (of_square(series(mpmath.cos, [(0, 1), (2, mpf(-1) / 2)], 4)), mpf(0), mpf("0.62"), 2, lambda u: u * u, 24),
    "sin64": (of_square(series(mpmath.sin, [(1, 1)], 3)), mpf(0), mpf("0.62"), 5, lambda u: u, 53),
    "cos64": (of_square(series(mpmath.cos, [(0, 1), (2, mpf(-1) / 2)], 4)), mpf(0), mpf("0.62"), 5, lambda u: u * u, 53),
    "atan32": (of_square(series(mpmath.atan, [(1, 1)], 3)), mpf(0), mpf(1), 8, lambda u: u * mpmath.sqrt(u) / mpmath.atan(mpmath.sqrt(u)) if u else 0, 24),
    "atan64": (of_square(series(mpmath.atan, [(1, 1)], 3)), mpf(0), mpf("0.1717"), 10, lambda u: u, 53),
    "asin64": (of_square(series(mpmath.asin, [(1, 1)], 3)), mpf(0), mpf("0.2501"), 12, lambda u: u, 53),
    "erf32": (of_square(series(mpmath.erf, [(1, 1)], 1)), mpf(0), mpf(1), 7, lambda u: 1, 24),
    "erf32_tail": (lambda x: mpmath.log(mpmath.erfc(x)), mpf(1), mpf("4.1"), 9, lambda x: mpmath.erfc(x) / mpmath.erf(x), 24),
    "erf64": (of_square(series(mpmath.erf, [(1, 1)], 1)), mpf(0), mpf(1), 13, lambda u: 1, 53),
    "erfcx64": (lambda t: erfcx(4 * (1 + t) / (1 - t)) * (1 + 8 * (1 + t) / (1 - t)), mpf("-1"), mpf("0.75"), 22,
                lambda t: 1, 53),
    "erfinv32": (lambda t: erfinv_over_x(2.5 + t) - 1.5, mpf("-2.5"), mpf("2.5"), 9, lambda t: 1 / erfinv_over_x(2.5 + t), 24),
    "erfinv32_tail": (lambda t: erfinv_over_x((t + mpf("3.1")) ** 2) - 3, mpf("-0.87"), mpf("0.98"), 12,
                      lambda t: 1 / erfinv_over_x((t + mpf("3.1")) ** 2), 24),
    "i1e": (lambda t: i1e_over(4 * (t + 1)) * (2 * t + 3) ** 2, mpf(-1), mpf(1), 28, lambda t: mpf("2.3"), 53),
    "i1e_tail": (lambda t: i1e(16 / (t + 1 + TINY)) * mpmath.sqrt(16 / (t + 1 + TINY)), mpf(-1), mpf(1), 26,
                 lambda t: mpmath.sqrt(2 * mpmath.pi), 53),
    "cbrt": (lambda m: mpmath.cbrt(m), mpf(1), mpf(8), 5, lambda m: 1 / mpmath.cbrt(m), 53),
}
QUOTIENTS = {"tanh16": (of_square(series(mpmath.tanh, [], 1)), mpf(0), mpf(25), 3)}
BEST = {"erf32_exp2", "erf32_exp2_tail", "tanh32_exp2"}
FITS |= {
    "erf32_exp2": (of_square(series(mpmath.erf, [(1, 1)], 1)), mpf(0), mpf(15) ** 2 / 256, 5, lambda u: 1, 24),
    "tanh32_exp2": (of_square(series(mpmath.tanh, [(1, 1)], 3)), mpf(0), mpf("1.5625"), 7,
                    lambda u: u * mpmath.sqrt(u) / mpmath.tanh(mpmath.sqrt(u)) if u else mpf(0), 24),
    "erf32_exp2_tail": (lambda x: mpmath.log(mpmath.erfc(x), 2), mpf(15) / 16, mpf(4), 5,
                        lambda x: LN2 * mpmath.erfc(x) / mpmath.erf(x), 24),
}


def fit_best(g, low, high, degree, weight):
    """Coefficients, lowest first, of the polynomial with the least maximum weighted error."""
    count = 120
    points = [(low + high) / 2 + (high - low) / 2 * mpmath.cos(mpmath.pi * (2 * k + 1) / (2 * count)) for k in range(count)]
    values, own, share = [g(p) for p in points], [weight(p) for p in points], [mpf(1)] * count
    for _ in range(200):
        with mpmath.workdps(30):
            scale = [mpmath.sqrt(s) * w for s, w in zip(share, own)]
            rows = mpmath.matrix([[f * p**k for k in range(degree + 1)] for f, p in zip(scale, points)])
            solved = mpmath.lu_solve(rows, mpmath.matrix([f * v for f, v in zip(scale, values)]))
        coefficients = list(solved)
        errors = [abs((mpmath.polyval(coefficients[::-1], p) - v) * w) for p, v, w in zip(points, values, own)]
        share = [s * e for s, e in zip(share, errors)]
        share = [s / sum(share) for s in share]
    return coefficients


def fit_quotient(g, low, high, degree):
    """Coefficients, lowest first, of two polynomials of one degree whose quotient has the least maximum relative
    error; the second is 1 at 0."""
    count = 120
    points = [(low + high) / 2 + (high - low) / 2 * mpmath.cos(mpmath.pi * (2 * k + 1) / (2 * count)) for k in range(count)]
    values, below, share = [g(p) for p in points], [mpf(1)] * count, [mpf(1)] * count
    best = (mpf(1), [], [])
    for _ in range(300):
        scale = [mpmath.sqrt(s) / (b * v) for s, b, v in zip(share, below, values)]
        rows = mpmath.matrix([[f * p**k for k in range(degree + 1)] + [-f * v * p**k for k in range(1, degree + 1)]
                              for f, p, v in zip(scale, points, values)])
        solved = list(mpmath.lu_solve(rows, mpmath.matrix([f * v for f, v in zip(scale, values)])))
        above, under = solved[:degree + 1], [mpf(1)] + solved[degree + 1:]
        below = [mpmath.polyval(under[::-1], p) for p in points]
        errors = [abs(mpmath.polyval(above[::-1], p) / b / v - 1) for p, b, v in zip(points, below, values)]
        if max(errors) < best[0]:
            best = (max(errors), above, under)
        share = [s * mpmath.sqrt(e) for s, e in zip(share, errors)]
        share = [s / sum(share) for s in share]
    return best


def fit(g, low, high, degree):
    """Coefficients, lowest first, of the polynomial that interpolates g at the Chebyshev points."""
    n = degree + 1
    middle, half = (low + high) / 2, (high - low) / 2
    points = [middle + half * mpmath.cos(mpmath.pi * (2 * k + 1) / (2 * n)) for k in range(n)]
    table = [g(p) for p in points]
    for level in range(1, n):  # divided differences, then Horner's form multiplied out
        for i in range(n - 1, level - 1, -1):
            table[i] = (table[i] - table[i - 1]) / (points[i] - points[i - level])
    coefficients = [mpf(0)] * n
    for i in range(n - 1, -1, -1):
        for k in range(n - 1, 0, -1):
            coefficients[k] = coefficients[k - 1] - points[i] * coefficients[k]
        coefficients[0] = table[i] - points[i] * coefficients[0]
    return coefficients


def rounded(value, bits):
    with mpmath.workprec(bits):
        return +value


def main():
    for name in sys.argv[1:] or [*FITS, *QUOTIENTS]:
        if name in QUOTIENTS:
            worst, *polynomials = fit_quotient(*QUOTIENTS[name])
            print(f"{name}: 2^{float(mpmath.log(worst, 2)):.1f}")
            for coefficients in polynomials:
                print("  {" + ", ".join(mpmath.nstr(rounded(c, 24), 9) for c in coefficients) + "}")
            continue
        g, low, high, degree, weight, bits = FITS[name]
        found = fit_best(g, low, high, degree, weight) if name in BEST else fit(g, low, high, degree)
        coefficients = [rounded(c, bits) for c in found]
        worst = mpf(0)
        for i in range(201):
            x = low + (high - low) * i / 200
            error = (mpmath.polyval(coefficients[::-1], x) - g(x)) * weight(x)
            worst = max(worst, abs(error))
        text = ", ".join(mpmath.nstr(c, 9 if bits == 24 else 17, strip_zeros=False) for c in coefficients)
        print(f"{name}: 2^{float(mpmath.log(worst, 2)):.1f}\n  {{{text}}}")


if __name__ == "__main__":
    sys.exit(main())
