// An attribute is expected.
// RUN: check
// ERROR: TK1101 at 5:46
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.reverse"(%x) {dimensions = ?} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
