"""An op in C and CUDA C++ with element hooks: x / (1 + |x|). The ops before and after it run in the same loop."""
import jax
import jax.numpy as jnp

import tokamak

C = """
TOK_KERNEL(soft_sign) {                                     // this block's part of the elements
  for (int64_t i = TOK_BEGIN(TOK_X_SIZE); i < TOK_END(TOK_X_SIZE); ++i) {
    float value = TOK_LOAD_0(i);
    TOK_STORE_0(i, value / (1 + fabsf(value)));
  }
}
"""
CUDA = """
TOK_KERNEL(soft_sign) {                                     // an element per thread
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= TOK_X_SIZE) return;
  float value = TOK_LOAD_0(i);
  TOK_STORE_0(i, value / (1 + fabsf(value)));
}
"""
soft_sign = tokamak.kernel(
    name="soft_sign", c=C, cuda=CUDA, inputs={"x": "f32[...]"}, hooks=True, vmap="batched", blocks=8,
    grid=lambda x: (-(-x.size // 256), 256), reference=jax.nn.soft_sign,
    vjp=lambda args, out, cotangent: cotangent * (1 - abs(out)) ** 2)  # fmt: skip


def f(x):
    return jnp.exp(-soft_sign(x * x - 1)) * 3


if __name__ == "__main__":
    x = jnp.linspace(-3, 3, 1 << 16, dtype=jnp.float32).reshape(256, 256)
    print("largest difference from jax.nn.soft_sign:", soft_sign.check(x))
    print("value:", jax.jit(f)(x)[0, :3])
    print("derivative:", jax.grad(lambda x: f(x).sum())(x)[0, :3])
    if jax.default_backend() == "tokamak":
        print(tokamak.explain(f, x))
