// One result is declared, two are returned.
// RUN: check
// ERROR: TK1506 at 5:3
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x, %x : tensor<2xf32>, tensor<2xf32>
}
