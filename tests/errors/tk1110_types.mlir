func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.negate %x : tensor<3xf32>
  return %x : tensor<2xf32>
}
// The written type is not that of the operand.
// RUN: check
// ERROR: TK1110 at 0:0
