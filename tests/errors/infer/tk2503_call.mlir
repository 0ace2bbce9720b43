// @f takes one argument.
// RUN: check
// ERROR: TK2503 at 5:8
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f(%x, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @f(%a: tensor<f32>) -> tensor<f32> {
  return %a : tensor<f32>
}
