// A permutation names every dimension once.
// RUN: check
// ERROR: TK2204 at 5:8
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x2xf32> {
  %0 = stablehlo.transpose %x, dims = [0, 0] : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
