// Twenty digits do not fit into 64 bits.
// RUN: check
// ERROR: TK1105 at 5:57
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.reverse"(%x) {dimensions = array<i64: 99999999999999999999>} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
