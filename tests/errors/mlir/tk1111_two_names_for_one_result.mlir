// negate has one result.
// RUN: check
// ERROR: TK1111 at 5:10
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0:2 = "stablehlo.negate"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %x : tensor<2xf32>
}
