// A product with a one-hot matrix selects rows.
// RUN: lint --target h200 --rules one-hot-matmul
// OUT: lint.one-hot-matmul
// OUT: model.py:2
// OUT: a product with a one-hot matrix of 2097152 elements selects rows
//     def f(table, ids):
//         return jax.nn.one_hot(ids, 4096) @ table
#loc = loc(unknown)
#loc1 = loc("table")
#loc2 = loc("ids")
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4096x256xf32> loc("table"), %arg1: tensor<512xi32> loc("ids")) -> (tensor<512x256xf32> {jax.result_info = "result"}) {
    %0 = call @_one_hot(%arg1) : (tensor<512xi32>) -> tensor<512x4096xf32> loc(#loc13)
    %1 = stablehlo.dot_general %0, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<512x4096xf32>, tensor<4096x256xf32>) -> tensor<512x256xf32> loc(#loc14)
    return %1 : tensor<512x256xf32> loc(#loc15)
  } loc(#loc)
  func.func private @_one_hot(%arg0: tensor<512xi32> loc(unknown)) -> tensor<512x4096xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<512xi32>) -> tensor<512x1xi32> loc(#loc6)
    %1 = stablehlo.iota dim = 1 : tensor<1x4096xi32> loc(#loc7)
    %2 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<512x1xi32>) -> tensor<512x4096xi32> loc(#loc8)
    %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x4096xi32>) -> tensor<512x4096xi32> loc(#loc8)
    %4 = stablehlo.compare EQ, %2, %3, SIGNED : (tensor<512x4096xi32>, tensor<512x4096xi32>) -> tensor<512x4096xi1> loc(#loc8)
    %5 = stablehlo.convert %4 : (tensor<512x4096xi1>) -> tensor<512x4096xf32> loc(#loc9)
    return %5 : tensor<512x4096xf32> loc(#loc)
  } loc(#loc17)
} loc(#loc)
#loc3 = loc("model.py":2:11 to :36)
#loc4 = loc("model.py":2:11 to :44)
#loc5 = loc("main.py":297:17 to :52)
#loc6 = loc("broadcast_in_dim")
#loc7 = loc("iota")
#loc8 = loc("eq")
#loc9 = loc("convert_element_type")
#loc10 = loc("f"(#loc3))
#loc11 = loc("f"(#loc4))
#loc12 = loc("lower"(#loc5))
#loc13 = loc("jit(f)/jit(_one_hot)"(#loc10))
#loc14 = loc("jit(f)/dot_general"(#loc11))
#loc15 = loc("jit(f)"(#loc12))
#loc16 = loc("jit(f)/jit"(#loc10))
#loc17 = loc("jit:"(#loc16))
