// A list that is not closed.
// RUN: check
// ERROR: TK1101 at 5:40
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.reverse %x, dims = [0 : tensor<2xf32>
  return %0 : tensor<2xf32>
}
