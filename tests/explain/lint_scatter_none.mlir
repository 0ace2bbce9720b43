// Indices that are arguments.
// RUN: lint --target h200 --rules scatter-is-dense
// OUT: no lints
//     def f(x, v, i):
//         return x.at[i].add(v)
#loc1 = loc("x")
#loc2 = loc("v")
#loc3 = loc("i")
#loc6 = loc("scatter-add")
#loc9 = loc("scatter-add:"(#loc6))
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<512x256xf32> loc("x"), %arg1: tensor<64x256xf32> loc("v"), %arg2: tensor<64xi32> loc("i")) -> (tensor<512x256xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<0> : tensor<i32> loc(#loc10)
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<64xi32> loc(#loc11)
    %1 = stablehlo.compare LT, %arg2, %0, SIGNED : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1> loc(#loc11)
    %c_0 = stablehlo.constant dense<512> : tensor<i32> loc(#loc10)
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<64xi32> loc(#loc12)
    %3 = stablehlo.add %arg2, %2 : tensor<64xi32> loc(#loc12)
    %4 = stablehlo.select %1, %3, %arg2 : tensor<64xi1>, tensor<64xi32> loc(#loc13)
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<64xi32>) -> tensor<64x1xi32> loc(#loc14)
    %6 = "stablehlo.scatter"(%arg0, %5, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<f32> loc("scatter-add:"(#loc6)), %arg4: tensor<f32> loc("scatter-add:"(#loc6))):
      %7 = stablehlo.add %arg3, %arg4 : tensor<f32> loc(#loc12)
      stablehlo.return %7 : tensor<f32> loc(#loc15)
    }) : (tensor<512x256xf32>, tensor<64x1xi32>, tensor<64x256xf32>) -> tensor<512x256xf32> loc(#loc15)
    return %6 : tensor<512x256xf32> loc(#loc10)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc4 = loc("main.py":297:17 to :52)
#loc5 = loc("model.py":2:11 to :25)
#loc7 = loc("lower"(#loc4))
#loc8 = loc("f"(#loc5))
#loc10 = loc("jit(f)"(#loc7))
#loc11 = loc("jit(f)/lt"(#loc8))
#loc12 = loc("jit(f)/add"(#loc8))
#loc13 = loc("jit(f)/select_n"(#loc8))
#loc14 = loc("jit(f)/broadcast_in_dim"(#loc8))
#loc15 = loc("jit(f)/scatter-add"(#loc8))
