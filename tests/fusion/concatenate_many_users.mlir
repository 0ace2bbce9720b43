// A concatenation of four rows with several users, one of them a one-row
// result: one kernel, in which a thread computes all rows of a column.
// RUN: kernels --target cuda
// KERNELS: 1
// RUN: run --backend interp --seed 1 --outputs %t/concatenate_many_users.npz
// RUN: run --backend sim-gpu --seed 1 --expect %t/concatenate_many_users.npz --json
// OUT: "launches":1
module @jit_fn attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<1003xf32>, %arg1: tensor<1003xf32>, %arg2: tensor<1003xf32>, %arg3: tensor<1003xf32>) -> (tensor<4x1003xf32> {jax.result_info = "result[0]"}, tensor<4x1003xf32> {jax.result_info = "result[1]"}, tensor<1003xi1> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.multiply %arg0, %arg1 : tensor<1003xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1003xf32>
    %2 = stablehlo.add %0, %1 : tensor<1003xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [1] : (tensor<1003xf32>) -> tensor<1x1003xf32>
    %4 = stablehlo.sine %arg2 : tensor<1003xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [1] : (tensor<1003xf32>) -> tensor<1x1003xf32>
    %6 = stablehlo.subtract %arg3, %arg0 : tensor<1003xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [1] : (tensor<1003xf32>) -> tensor<1x1003xf32>
    %8 = stablehlo.multiply %arg1, %arg2 : tensor<1003xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [1] : (tensor<1003xf32>) -> tensor<1x1003xf32>
    %10 = stablehlo.concatenate %3, %5, %7, %9, dim = 0 : (tensor<1x1003xf32>, tensor<1x1003xf32>, tensor<1x1003xf32>, tensor<1x1003xf32>) -> tensor<4x1003xf32>
    %11 = stablehlo.slice %10 [0:1, 0:1003] : (tensor<4x1003xf32>) -> tensor<1x1003xf32>
    %12 = stablehlo.reshape %11 : (tensor<1x1003xf32>) -> tensor<1003xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1003xf32>
    %14 = stablehlo.compare GT, %12, %13, FLOAT : (tensor<1003xf32>, tensor<1003xf32>) -> tensor<1003xi1>
    %15 = stablehlo.slice %10 [2:3, 0:1003] : (tensor<4x1003xf32>) -> tensor<1x1003xf32>
    %16 = stablehlo.reshape %15 : (tensor<1x1003xf32>) -> tensor<1003xf32>
    %cst_1 = stablehlo.constant dense<-1.000000e+00> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1003xf32>
    %18 = stablehlo.compare LT, %16, %17, FLOAT : (tensor<1003xf32>, tensor<1003xf32>) -> tensor<1003xi1>
    %19 = stablehlo.or %14, %18 : tensor<1003xi1>
    %20 = stablehlo.broadcast_in_dim %19, dims = [1] : (tensor<1003xi1>) -> tensor<1x1003xi1>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %21 = call @_where(%20, %cst_2, %10) : (tensor<1x1003xi1>, tensor<f32>, tensor<4x1003xf32>) -> tensor<4x1003xf32>
    %22 = stablehlo.tanh %10 : tensor<4x1003xf32>
    return %21, %22, %19 : tensor<4x1003xf32>, tensor<4x1003xf32>, tensor<1003xi1>
  }
  func.func private @_where(%arg0: tensor<1x1003xi1>, %arg1: tensor<f32>, %arg2: tensor<4x1003xf32>) -> tensor<4x1003xf32> {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<1x1003xi1>) -> tensor<4x1003xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x1003xf32>
    %3 = stablehlo.select %1, %2, %arg2 : tensor<4x1003xi1>, tensor<4x1003xf32>
    return %3 : tensor<4x1003xf32>
  }
}
