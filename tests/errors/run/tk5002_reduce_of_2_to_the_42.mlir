// 2^42 equal elements are one element until they are needed.
// RUN: run --backend=interp
// ERROR: TK5002 at 5:8
func.func @main() -> tensor<f32> {
  %0 = stablehlo.constant dense<1.0> : tensor<1024x1024x1024x1024x4xf32>
  %1 = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.reduce(%0 init: %1) applies stablehlo.add across dimensions = [0, 1, 2, 3, 4] : (tensor<1024x1024x1024x1024x4xf32>, tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}
