// The exact top-k; equal keys as in an unstable sort.
// RUN: run --backend interp
func.func @greater(%a: tensor<i32>, %b: tensor<i32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func @main() -> (tensor<4xi32>, tensor<4xi32>) {
  %i = stablehlo.iota dim = 0 : tensor<20xi32>
  %three = stablehlo.constant dense<3> : tensor<20xi32>
  %k = stablehlo.remainder %i, %three : tensor<20xi32>
  %none = stablehlo.constant dense<-1> : tensor<i32>
  %0:2 = stablehlo.custom_call @ApproxTopK(%k, %i, %none, %none) {called_computations = [@greater], mhlo.backend_config = {aggregate_to_topk = true, is_fallback = true, recall_target = 0.95 : f32, reduction_dim = 0 : i64, reduction_input_size_override = -1 : i64, top_k = 4 : i64}} : (tensor<20xi32>, tensor<20xi32>, tensor<i32>, tensor<i32>) -> (tensor<4xi32>, tensor<4xi32>)
  return %0#0, %0#1 : tensor<4xi32>, tensor<4xi32>
}
// VALUES: out_0: s32[4] {2, 2, 2, 2}
// VALUES: out_1: s32[4] {2, 17, 5, 14}
