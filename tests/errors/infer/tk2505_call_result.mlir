// @f gives f32, the call says f64.
// RUN: check
// ERROR: TK2505 at 5:8
func.func @main(%x: tensor<f32>) -> tensor<f64> {
  %0 = call @f(%x) : (tensor<f32>) -> tensor<f64>
  return %0 : tensor<f64>
}
func.func private @f(%a: tensor<f32>) -> tensor<f32> {
  return %a : tensor<f32>
}
