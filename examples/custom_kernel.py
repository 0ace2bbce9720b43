"""An op in C and CUDA C++ with element hooks: 1 - 2 / (exp(2x) + 1), with jnp.sin before it and * 3 after it in the same loop."""
import jax
import jax.numpy as jnp

import tokamak

C = """
TOK_KERNEL(soft_sign) {                                     // this block's part of the elements
  for (int64_t i = TOK_BEGIN(TOK_X_SIZE); i < TOK_END(TOK_X_SIZE); ++i)
    TOK_STORE_0(i, 1 - 2 / (expf(2 * TOK_LOAD_0(i)) + 1));
}
"""
CUDA = """
TOK_KERNEL(soft_sign) {                                     // an element per thread
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < TOK_X_SIZE) TOK_STORE_0(i, 1 - 2 / (expf(2 * TOK_LOAD_0(i)) + 1));
}
"""
soft_sign = tokamak.kernel(
    name="soft_sign", c=C, cuda=CUDA, inputs={"x": "f32[...]"},
    out=lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype),
    blocks=8, grid=lambda x: (-(-x.size // 256), 256), hooks=True, vmap="batched",
    vjp=lambda args, out, cotangent: cotangent * (1 - out * out),
    reference=jnp.tanh)  # fmt: skip


def f(x):
    return soft_sign(jnp.sin(x)) * 3


if __name__ == "__main__":
    x = jnp.linspace(-3, 3, 1 << 16, dtype=jnp.float32).reshape(256, 256)
    print("largest difference from jnp.tanh:", soft_sign.check(x))
    print("value:", jax.jit(f)(x)[0, :3])
    print("derivative:", jax.grad(lambda x: f(x).sum())(x)[0, :3])
    if jax.default_backend() == "tokamak":
        print(tokamak.explain(f, x))
