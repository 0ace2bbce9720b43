// The product sums rows by index: it selects nothing.
// RUN: lint --target h200 --rules one-hot-matmul
// OUT: no lints
//     def f(table, ids, x):
//         return jax.nn.one_hot(ids, 4096).T @ x
#loc = loc(unknown)
#loc1 = loc("ids")
#loc2 = loc("x")
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<512xi32> loc("ids"), %arg1: tensor<512x128xf32> loc("x")) -> (tensor<4096x128xf32> {jax.result_info = "result"}) {
    %0 = call @_one_hot(%arg0) : (tensor<512xi32>) -> tensor<512x4096xf32> loc(#loc15)
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<512x4096xf32>) -> tensor<4096x512xf32> loc(#loc16)
    %2 = stablehlo.dot_general %1, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4096x512xf32>, tensor<512x128xf32>) -> tensor<4096x128xf32> loc(#loc17)
    return %2 : tensor<4096x128xf32> loc(#loc18)
  } loc(#loc)
  func.func private @_one_hot(%arg0: tensor<512xi32> loc(unknown)) -> tensor<512x4096xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<512xi32>) -> tensor<512x1xi32> loc(#loc7)
    %1 = stablehlo.iota dim = 1 : tensor<1x4096xi32> loc(#loc8)
    %2 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<512x1xi32>) -> tensor<512x4096xi32> loc(#loc9)
    %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x4096xi32>) -> tensor<512x4096xi32> loc(#loc9)
    %4 = stablehlo.compare EQ, %2, %3, SIGNED : (tensor<512x4096xi32>, tensor<512x4096xi32>) -> tensor<512x4096xi1> loc(#loc9)
    %5 = stablehlo.convert %4 : (tensor<512x4096xi1>) -> tensor<512x4096xf32> loc(#loc10)
    return %5 : tensor<512x4096xf32> loc(#loc)
  } loc(#loc20)
} loc(#loc)
#loc3 = loc("model.py":2:11 to :36)
#loc4 = loc("model.py":2:11 to :38)
#loc5 = loc("model.py":2:11 to :42)
#loc6 = loc("main.py":297:17 to :52)
#loc7 = loc("broadcast_in_dim")
#loc8 = loc("iota")
#loc9 = loc("eq")
#loc10 = loc("convert_element_type")
#loc11 = loc("f"(#loc3))
#loc12 = loc("f"(#loc4))
#loc13 = loc("f"(#loc5))
#loc14 = loc("lower"(#loc6))
#loc15 = loc("jit(f)/jit(_one_hot)"(#loc11))
#loc16 = loc("jit(f)/transpose"(#loc12))
#loc17 = loc("jit(f)/dot_general"(#loc13))
#loc18 = loc("jit(f)"(#loc14))
#loc19 = loc("jit(f)/jit"(#loc11))
#loc20 = loc("jit:"(#loc19))
