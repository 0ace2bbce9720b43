"""The source that lint_suppressed.hlo names."""
def f(x):
    w = x.astype("float64")  # tokamak: ignore[lint.float64]
    # tokamak: ignore
    v = x.astype("float64")
    u = x.astype("float64")  # tokamak: ignore[upcast, dispatch-bound]
    return w, v, u
