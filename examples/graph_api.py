"""Looks at a function's program and plan, edits them, and runs the result. See docs/graph_api.md."""

import jax
import jax.numpy as jnp
import numpy as np

import tokamak


def layer(w, x):
    hidden = jnp.tanh(x @ w)
    return hidden / jnp.sum(hidden**2, axis=1, keepdims=True)


w, x = np.full((64, 32), 0.01, "f4"), np.ones((128, 64), "f4")
g = tokamak.graph(layer, w, x)

# Look: instructions with their users, lines and kernels; kernels with what they read and why they are what they are.
(tanh,) = g.find(op="tanh")
print(tanh.name, tanh.type, "used by", [user.name for user in tanh.users], "computed by", [kernel.name for kernel in tanh.kernels])
for kernel in g.kernels:
    print(kernel.name, [instr.name for instr in kernel.instructions], "reads", [array.name for array in kernel.reads])
print(g.path(g.parameters[0], g.results[0]))

# Plan differently, for another machine.
gpu = g.replan(target="h200", never_fuse=[tanh])
print(gpu[tanh].kernels[0].why)

# Edit, run, save.
edited = g.copy()
edited.replace(tanh, lambda v: jnp.clip(v, -1, 1))
call = edited.outline(edited.find(scope="*reduce_sum", computation="main"), "norm")
print(call.name, "computes", [instr.op for instr in call.called[0] if instr.op != "parameter"])
clipped = jax.numpy.clip(x @ w, -1, 1)
assert np.allclose(edited(w, x), clipped / jnp.sum(clipped**2, axis=1, keepdims=True), rtol=1e-5)
edited.save("clipped.mlir")
assert np.array_equal(tokamak.graph("clipped.mlir")(w, x), edited(w, x))
