// Two dimensions of the operand cannot become one of the result.
// RUN: check
// ERROR: TK2202 at 5:8
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [1, 1] : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
