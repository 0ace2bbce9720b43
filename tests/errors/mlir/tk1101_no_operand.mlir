// An operand follows a comma.
// RUN: check
// ERROR: TK1101 at 5:26
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %x, : tensor<2xf32>
  return %0 : tensor<2xf32>
}
