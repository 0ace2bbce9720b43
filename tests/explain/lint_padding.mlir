// Half of the rows of a product are padding.
// RUN: lint --target h200 --rules padding-waste
// OUT: lint.padding-waste
// OUT: model.py:2
// OUT: 50 % of the multiplications of a product are with zeros
//     def f(x, w):
//         return jnp.pad(x, ((0, 512), (0, 0))) @ w
#loc = loc(unknown)
#loc1 = loc("x")
#loc2 = loc("w")
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<512x512xf32> loc("x"), %arg1: tensor<512x512xf32> loc("w")) -> (tensor<1024x512xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<0> : tensor<i32> loc(#loc11)
    %0 = call @_pad(%arg0, %c) : (tensor<512x512xf32>, tensor<i32>) -> tensor<1024x512xf32> loc(#loc12)
    %1 = stablehlo.dot_general %0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1024x512xf32>, tensor<512x512xf32>) -> tensor<1024x512xf32> loc(#loc13)
    return %1 : tensor<1024x512xf32> loc(#loc11)
  } loc(#loc)
  func.func private @_pad(%arg0: tensor<512x512xf32> loc(unknown), %arg1: tensor<i32> loc(unknown)) -> tensor<1024x512xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32> loc(#loc6)
    %1 = stablehlo.pad %arg0, %0, low = [0, 0], high = [512, 0], interior = [0, 0] : (tensor<512x512xf32>, tensor<f32>) -> tensor<1024x512xf32> loc(#loc7)
    return %1 : tensor<1024x512xf32> loc(#loc)
  } loc(#loc15)
} loc(#loc)
#loc3 = loc("main.py":297:17 to :52)
#loc4 = loc("model.py":2:11 to :41)
#loc5 = loc("model.py":2:11 to :45)
#loc6 = loc("convert_element_type")
#loc7 = loc("pad")
#loc8 = loc("lower"(#loc3))
#loc9 = loc("f"(#loc4))
#loc10 = loc("f"(#loc5))
#loc11 = loc("jit(f)"(#loc8))
#loc12 = loc("jit(f)/jit(_pad)"(#loc9))
#loc13 = loc("jit(f)/dot_general"(#loc10))
#loc14 = loc("jit(f)/jit"(#loc9))
#loc15 = loc("jit:"(#loc14))
