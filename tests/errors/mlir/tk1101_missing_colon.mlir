// The types of an op are missing.
// RUN: check
// ERROR: TK1101 at 5:28
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.negate %x tensor<2xf32>
  return %0 : tensor<2xf32>
}
