// Approximate top-k is a sort on platforms without it.
// RUN: tokamak run %d/top_k.hlo --backend interp --seed 1 --outputs %t/top_k.npz
// RUN: run --backend interp --seed 1 --strict --expect %t/top_k.npz --rtol 0 --atol 0
func.func @less(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func public @main(%x: tensor<16x256xf32>, %none: tensor<0x3xf32>) -> (tensor<16x4xf32>, tensor<16x4xi32>, tensor<3xf32>) {
  %i = stablehlo.iota dim = 1 : tensor<16x256xi32>
  %c = stablehlo.constant dense<-1> : tensor<i32>
  %inf = stablehlo.constant dense<0x7F800000> : tensor<f32>
  %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %inf, %c) {called_computations = [@less], mhlo.backend_config = {aggregate_to_topk = true, is_fallback = true, recall_target = 0.949999988 : f32, reduction_dim = 1 : i64, reduction_input_size_override = -1 : i64, top_k = 4 : i64}} : (tensor<16x256xf32>, tensor<16x256xi32>, tensor<f32>, tensor<i32>) -> (tensor<16x4xf32>, tensor<16x4xi32>)
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%none init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<0x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %0#0, %0#1, %1 : tensor<16x4xf32>, tensor<16x4xi32>, tensor<3xf32>
}
