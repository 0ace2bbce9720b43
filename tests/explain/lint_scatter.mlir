// Every row once.
// RUN: lint --target h200 --rules scatter-is-dense
// OUT: lint.scatter-is-dense
// OUT: model.py:2
// OUT: a scatter to 512 constant indices at equal distances: every element is written once
//     def f(x, v):
//         return x.at[jnp.arange(512)].add(v)
#loc1 = loc("x")
#loc2 = loc("v")
#loc6 = loc("scatter-add")
#loc10 = loc("scatter-add:"(#loc6))
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<512x256xf32> loc("x"), %arg1: tensor<512x256xf32> loc("v")) -> (tensor<512x256xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.iota dim = 0 : tensor<512xi32> loc(#loc11)
    %c = stablehlo.constant dense<0> : tensor<i32> loc(#loc12)
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<512xi32> loc(#loc13)
    %2 = stablehlo.compare LT, %0, %1, SIGNED : (tensor<512xi32>, tensor<512xi32>) -> tensor<512xi1> loc(#loc13)
    %c_0 = stablehlo.constant dense<512> : tensor<i32> loc(#loc12)
    %3 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<512xi32> loc(#loc14)
    %4 = stablehlo.add %0, %3 : tensor<512xi32> loc(#loc14)
    %5 = stablehlo.select %2, %4, %0 : tensor<512xi1>, tensor<512xi32> loc(#loc15)
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<512xi32>) -> tensor<512x1xi32> loc(#loc16)
    %7 = "stablehlo.scatter"(%arg0, %6, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<f32> loc("scatter-add:"(#loc6)), %arg3: tensor<f32> loc("scatter-add:"(#loc6))):
      %8 = stablehlo.add %arg2, %arg3 : tensor<f32> loc(#loc14)
      stablehlo.return %8 : tensor<f32> loc(#loc17)
    }) : (tensor<512x256xf32>, tensor<512x1xi32>, tensor<512x256xf32>) -> tensor<512x256xf32> loc(#loc17)
    return %7 : tensor<512x256xf32> loc(#loc12)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("model.py":2:16 to :31)
#loc4 = loc("main.py":297:17 to :52)
#loc5 = loc("model.py":2:11 to :39)
#loc7 = loc("f"(#loc3))
#loc8 = loc("lower"(#loc4))
#loc9 = loc("f"(#loc5))
#loc11 = loc("jit(f)/iota"(#loc7))
#loc12 = loc("jit(f)"(#loc8))
#loc13 = loc("jit(f)/lt"(#loc9))
#loc14 = loc("jit(f)/add"(#loc9))
#loc15 = loc("jit(f)/select_n"(#loc9))
#loc16 = loc("jit(f)/broadcast_in_dim"(#loc9))
#loc17 = loc("jit(f)/scatter-add"(#loc9))
