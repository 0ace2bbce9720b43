// The function @f is not defined.
// RUN: check
// ERROR: TK1505 at 5:8
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @f(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
