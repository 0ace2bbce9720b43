// Only a dimension of 1 grows.
// RUN: check
// ERROR: TK2205 at 5:8
func.func @main(%x: tensor<2xf32>) -> tensor<3x4xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<2xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
