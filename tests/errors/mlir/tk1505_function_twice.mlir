// Two functions called @main.
// RUN: check
// ERROR: TK1505 at 7:11
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
