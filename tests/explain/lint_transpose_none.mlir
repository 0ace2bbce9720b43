// Dimensions named in jnp.einsum.
// RUN: lint --target h200 --rules stored-transpose
// OUT: no lints
//     def f(x, w):
//         return jnp.tanh(jnp.einsum("bsd,de->sbe", x, w))
#loc1 = loc("x")
#loc2 = loc("w")
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<64x512x256xf32> loc("x"), %arg1: tensor<256x256xf32> loc("w")) -> (tensor<512x64x256xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.dot_general %arg1, %arg0, contracting_dims = [0] x [2], precision = [DEFAULT, DEFAULT] : (tensor<256x256xf32>, tensor<64x512x256xf32>) -> tensor<256x64x512xf32> loc(#loc9)
    %1 = stablehlo.transpose %0, dims = [2, 1, 0] : (tensor<256x64x512xf32>) -> tensor<512x64x256xf32> loc(#loc10)
    %2 = stablehlo.tanh %1 : tensor<512x64x256xf32> loc(#loc11)
    return %2 : tensor<512x64x256xf32> loc(#loc12)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("model.py":2:20 to :51)
#loc4 = loc("model.py":2:11 to :52)
#loc5 = loc("main.py":297:17 to :52)
#loc6 = loc("f"(#loc3))
#loc7 = loc("f"(#loc4))
#loc8 = loc("lower"(#loc5))
#loc9 = loc("jit(f)/bsd,de->sbe/dot_general"(#loc6))
#loc10 = loc("jit(f)/bsd,de->sbe/transpose"(#loc6))
#loc11 = loc("jit(f)/tanh"(#loc7))
#loc12 = loc("jit(f)"(#loc8))
