// The highest precision; bf16.
// RUN: lint --target h200 --rules tf32
// OUT: no lints
//     def f(x, w):
//         return jnp.dot(x, w, precision="highest"), jnp.dot(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16))
#loc1 = loc("x")
#loc2 = loc("w")
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<1024x64xf32> loc("x"), %arg1: tensor<64x1024xf32> loc("w")) -> (tensor<1024x1024xf32> {jax.result_info = "result[0]"}, tensor<1024x1024xbf16> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<1024x64xf32>, tensor<64x1024xf32>) -> tensor<1024x1024xf32> loc(#loc13)
    %1 = stablehlo.convert %arg0 : (tensor<1024x64xf32>) -> tensor<1024x64xbf16> loc(#loc14)
    %2 = stablehlo.convert %arg1 : (tensor<64x1024xf32>) -> tensor<64x1024xbf16> loc(#loc15)
    %3 = stablehlo.dot_general %1, %2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1024x64xbf16>, tensor<64x1024xbf16>) -> tensor<1024x1024xbf16> loc(#loc16)
    return %0, %3 : tensor<1024x1024xf32>, tensor<1024x1024xbf16> loc(#loc17)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("model.py":2:11 to :45)
#loc4 = loc("model.py":2:55 to :77)
#loc5 = loc("model.py":2:79 to :101)
#loc6 = loc("model.py":2:47 to :102)
#loc7 = loc("main.py":297:17 to :52)
#loc8 = loc("f"(#loc3))
#loc9 = loc("f"(#loc4))
#loc10 = loc("f"(#loc5))
#loc11 = loc("f"(#loc6))
#loc12 = loc("lower"(#loc7))
#loc13 = loc("jit(f)/dot_general"(#loc8))
#loc14 = loc("jit(f)/convert_element_type"(#loc9))
#loc15 = loc("jit(f)/convert_element_type"(#loc10))
#loc16 = loc("jit(f)/dot_general"(#loc11))
#loc17 = loc("jit(f)"(#loc12))
