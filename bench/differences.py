"""How far apart two compilers' results of a program are."""

import math


def worst_difference(ours, theirs):
    """The largest difference, relative to the number and the size of its array; for integers the fraction that differs."""
    import jax
    import numpy as np

    worst = 0.0
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return math.inf
        if a.dtype.kind in "biu":
            worst = max(worst, float(np.mean(a != b)) if a.size else 0.0)
            continue
        for x, y in zip(np.array_split(a.ravel(), max(1, a.size >> 22)), np.array_split(b.ravel(), max(1, a.size >> 22))):
            x, y = x.astype(np.float64), y.astype(np.float64)
            same = (x == y) | (np.isnan(x) & np.isnan(y))
            finite = np.isfinite(x) & np.isfinite(y)
            if not np.all(same | finite):
                return math.inf
            size = math.sqrt(float(np.mean(np.square(y[finite])))) if finite.any() else 0.0
            off = np.abs(x - y)[finite & ~same]
            if off.size:
                worst = max(worst, float(np.max(off / (np.abs(y)[finite & ~same] + size))))
    return worst
