// Declared is f32[3], returned f32[2].
// RUN: check
// ERROR: TK1506 at 5:3
func.func @main(%x: tensor<2xf32>) -> tensor<3xf32> {
  return %x : tensor<2xf32>
}
