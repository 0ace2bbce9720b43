// A vector and a matrix are not concatenated.
// RUN: check
// ERROR: TK2212 at 5:8
func.func @main(%x: tensor<2xf32>, %y: tensor<2x2xf32>) -> tensor<4xf32> {
  %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<2xf32>, tensor<2x2xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
