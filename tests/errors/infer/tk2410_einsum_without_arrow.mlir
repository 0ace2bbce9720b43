// An einsum needs an arrow and the result's labels.
// RUN: check
// ERROR: TK2410 at 5:8
func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %0 = "stablehlo.einsum"(%x, %y) {einsum_config = "ab,bc"} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
