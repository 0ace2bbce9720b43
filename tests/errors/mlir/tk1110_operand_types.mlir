// %x is a vector of 2, the op declares 3.
// RUN: check
// ERROR: TK1110 at 5:27
func.func @main(%x: tensor<2xf32>) -> tensor<3xf32> {
  %0 = "stablehlo.negate"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
