"""A fusion policy in Python: it keeps the exponentials of a softmax in a kernel of their own, and prints why.

    JAX_PLATFORMS=tokamak python examples/fusion_policy.py
"""
import jax
import jax.numpy as jnp
import tokamak


def softmax(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def no_recomputed_exponentials(move):
    """None: no opinion. "accept" or "veto": whatever the cost model says. A number: that many times as attractive."""
    if "exponential" in move.producer_ops and "divide" in move.consumer_ops:
        return "veto"
    if move.saved_bytes > 1e6:
        return 1.1


def report(name, x):
    data = tokamak.explain(softmax, x).data
    print(f"{name}: {len(data['kernels'])} kernels, {data['fused']['predicted_us']:.1f} us predicted")
    for decision in data["decisions"]:
        if decision["rule"].startswith("policy."):
            print(f"  {decision['rule']} {decision['subject']} -> {decision['other']}: {decision['because']}")


x = jnp.linspace(0, 1, 512 * 1024).reshape(512, 1024)
report("without a policy", x)
with tokamak.fusion_policy(no_recomputed_exponentials):
    report("with the policy", x)
    y = jax.jit(softmax)(x)
print("the sum of a row is", float(y[0].sum()))
