// A duplicate attribute.
// RUN: check
// ERROR: TK1104 at 5:61
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.reverse"(%x) {dimensions = array<i64: 0>, dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
