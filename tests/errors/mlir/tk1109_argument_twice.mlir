// Two arguments called %x.
// RUN: check
// ERROR: TK1109 at 4:36
func.func @main(%x: tensor<2xf32>, %x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
