// negate takes an operand.
// RUN: check
// ERROR: TK1508 at 5:8
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.negate : tensor<2xf32>
  return %0 : tensor<2xf32>
}
