// The type after a pretty op is that of its operand.
// RUN: check
// ERROR: TK1110 at 5:25
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.negate %x : tensor<3xf32>
  return %x : tensor<2xf32>
}
