// The inputs of a sort have one shape.
// RUN: run --seed 1
// ERROR: TK5001 at 11:10
func.func @greater(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func @main(%x: tensor<9xf32>, %i: tensor<4xi32>) -> (tensor<2xf32>, tensor<2xi32>) {
  %none = stablehlo.constant dense<-1> : tensor<i32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %low, %none) {called_computations = [@greater], mhlo.backend_config = {reduction_dim = 0 : i64, top_k = 2 : i64}} : (tensor<9xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
  return %0#0, %0#1 : tensor<2xf32>, tensor<2xi32>
}
