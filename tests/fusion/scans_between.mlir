// One-hot rows, their running positions (a scan that is split into partitions), and elements selected
// by those: the reductions before and after the scan read the same indices, but are still two kernels.
// RUN: explain --target h200 --no-compare
// UNCHECKED: values: slow for the simulator
// KERNELS: 7
module @jit_fn attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8192x64xf32>) -> (tensor<8192x2xi32> {jax.result_info = "result[0]"}, tensor<8192x2xi32> {jax.result_info = "result[1]"}, tensor<8192x2xf32> {jax.result_info = "result[2]"}, tensor<f32> {jax.result_info = "result[3]"}) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<8192x64xf32>, tensor<f32>) -> tensor<8192xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<8192xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<8192xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<8192xf32>) -> tensor<8192x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<8192x1xf32>) -> tensor<8192x64xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<8192x64xf32>
    %6 = stablehlo.exponential %5 : tensor<8192x64xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<8192x64xf32>, tensor<f32>) -> tensor<8192xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<8192xf32>) -> tensor<8192x1xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<8192x1xf32>) -> tensor<8192x64xf32>
    %10 = stablehlo.divide %6, %9 : tensor<8192x64xf32>
    %iota = stablehlo.iota dim = 1 : tensor<8192x64xi32>
    %sorted:2 = "stablehlo.sort"(%10, %iota) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
      %less = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %less : tensor<i1>
    }) : (tensor<8192x64xf32>, tensor<8192x64xi32>) -> (tensor<8192x64xf32>, tensor<8192x64xi32>)
    %values = stablehlo.slice %sorted#0 [0:8192, 62:64] : (tensor<8192x64xf32>) -> tensor<8192x2xf32>
    %indices = stablehlo.slice %sorted#1 [0:8192, 62:64] : (tensor<8192x64xi32>) -> tensor<8192x2xi32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.reduce(%values init: %cst_2) applies stablehlo.add across dimensions = [1] : (tensor<8192x2xf32>, tensor<f32>) -> tensor<8192xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0] : (tensor<8192xf32>) -> tensor<8192x1xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1] : (tensor<8192x1xf32>) -> tensor<8192x2xf32>
    %14 = stablehlo.divide %values, %13 : tensor<8192x2xf32>
    %15 = call @_one_hot(%indices) : (tensor<8192x2xi32>) -> tensor<8192x2x64xi32>
    %16 = stablehlo.reshape %15 : (tensor<8192x2x64xi32>) -> tensor<16384x64xi32>
    %17 = call @cumsum(%16) : (tensor<16384x64xi32>) -> tensor<16384x64xi32>
    %18 = stablehlo.reshape %17 : (tensor<16384x64xi32>) -> tensor<8192x2x64xi32>
    %19 = stablehlo.multiply %18, %15 : tensor<8192x2x64xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %20 = stablehlo.reduce(%19 init: %c) applies stablehlo.add across dimensions = [2] : (tensor<8192x2x64xi32>, tensor<i32>) -> tensor<8192x2xi32>
    %c_3 = stablehlo.constant dense<1> : tensor<i32>
    %21 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<8192x2xi32>
    %22 = stablehlo.subtract %20, %21 : tensor<8192x2xi32>
    %c_4 = stablehlo.constant dense<256> : tensor<i32>
    %23 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<8192x2xi32>
    %24 = stablehlo.compare LT, %22, %23, SIGNED : (tensor<8192x2xi32>, tensor<8192x2xi32>) -> tensor<8192x2xi1>
    %25 = stablehlo.slice %15 [0:8192, 0:1, 0:64] : (tensor<8192x2x64xi32>) -> tensor<8192x1x64xi32>
    %26 = stablehlo.reshape %25 : (tensor<8192x1x64xi32>) -> tensor<8192x64xi32>
    %27 = stablehlo.convert %26 : (tensor<8192x64xi32>) -> tensor<8192x64xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %28 = stablehlo.reduce(%27 init: %cst_5) applies stablehlo.add across dimensions = [0] : (tensor<8192x64xf32>, tensor<f32>) -> tensor<64xf32>
    %cst_6 = stablehlo.constant dense<8.192000e+03> : tensor<f32>
    %29 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %30 = stablehlo.divide %28, %29 : tensor<64xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %31 = stablehlo.reduce(%10 init: %cst_7) applies stablehlo.add across dimensions = [0] : (tensor<8192x64xf32>, tensor<f32>) -> tensor<64xf32>
    %cst_8 = stablehlo.constant dense<8.192000e+03> : tensor<f32>
    %32 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %33 = stablehlo.divide %31, %32 : tensor<64xf32>
    %34 = stablehlo.multiply %30, %33 : tensor<64xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %35 = stablehlo.reduce(%34 init: %cst_9) applies stablehlo.add across dimensions = [0] : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
    %cst_10 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %36 = stablehlo.multiply %cst_10, %35 : tensor<f32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %37 = call @_where(%24, %14, %cst_11) : (tensor<8192x2xi1>, tensor<8192x2xf32>, tensor<f32>) -> tensor<8192x2xf32>
    return %indices, %22, %37, %36 : tensor<8192x2xi32>, tensor<8192x2xi32>, tensor<8192x2xf32>, tensor<f32>
  }
  func.func private @_one_hot(%arg0: tensor<8192x2xi32>) -> tensor<8192x2x64xi32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<8192x2xi32>) -> tensor<8192x2x1xi32>
    %1 = stablehlo.iota dim = 2 : tensor<1x1x64xi32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2] : (tensor<8192x2x1xi32>) -> tensor<8192x2x64xi32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2] : (tensor<1x1x64xi32>) -> tensor<8192x2x64xi32>
    %4 = stablehlo.compare EQ, %2, %3, SIGNED : (tensor<8192x2x64xi32>, tensor<8192x2x64xi32>) -> tensor<8192x2x64xi1>
    %5 = stablehlo.convert %4 : (tensor<8192x2x64xi1>) -> tensor<8192x2x64xi32>
    return %5 : tensor<8192x2x64xi32>
  }
  func.func private @cumsum(%arg0: tensor<16384x64xi32>) -> tensor<16384x64xi32> {
    %0 = call @cumsum_0(%arg0) : (tensor<16384x64xi32>) -> tensor<16384x64xi32>
    return %0 : tensor<16384x64xi32>
  }
  func.func private @cumsum_0(%arg0: tensor<16384x64xi32>) -> tensor<16384x64xi32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<i32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1, 1>, padding = dense<[[16383, 0], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 16384, 1>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg1: tensor<i32>, %arg2: tensor<i32>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<i32>
      stablehlo.return %2 : tensor<i32>
    }) : (tensor<16384x64xi32>, tensor<i32>) -> tensor<16384x64xi32>
    return %1 : tensor<16384x64xi32>
  }
  func.func private @_where(%arg0: tensor<8192x2xi1>, %arg1: tensor<8192x2xf32>, %arg2: tensor<f32>) -> tensor<8192x2xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<8192x2xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<8192x2xi1>, tensor<8192x2xf32>
    return %2 : tensor<8192x2xf32>
  }
}
