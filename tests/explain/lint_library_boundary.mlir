// A library call stores a product for tanh.
// RUN: lint --target h200 --rules library-boundary
// OUT: lint.library-boundary
// OUT: model.py:2
// OUT: cuBLASLt stores 4.19 MB that only tanh_3 reads, 1 operations
//     def f(x, w):
//         return jnp.tanh(x @ w)
#loc1 = loc("x")
#loc2 = loc("w")
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<1024x1024xf32> loc("x"), %arg1: tensor<1024x1024xf32> loc("w")) -> (tensor<1024x1024xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32> loc(#loc9)
    %1 = stablehlo.tanh %0 : tensor<1024x1024xf32> loc(#loc10)
    return %1 : tensor<1024x1024xf32> loc(#loc11)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("model.py":2:20 to :25)
#loc4 = loc("model.py":2:11 to :26)
#loc5 = loc("main.py":297:17 to :52)
#loc6 = loc("f"(#loc3))
#loc7 = loc("f"(#loc4))
#loc8 = loc("lower"(#loc5))
#loc9 = loc("jit(f)/dot_general"(#loc6))
#loc10 = loc("jit(f)/tanh"(#loc7))
#loc11 = loc("jit(f)"(#loc8))
