// f32[3] is declared, f32[2] is returned.
// RUN: check
// ERROR: TK1506 at 5:3
func.func @main(%x: tensor<2xf32>) -> tensor<3xf32> {
  return %x : tensor<2xf32>
}
