// b is 3 and 5.
// RUN: check
// ERROR: TK2411 at 5:8
func.func @main(%x: tensor<2x3xf32>, %y: tensor<5x4xf32>) -> tensor<2x4xf32> {
  %0 = "stablehlo.einsum"(%x, %y) {einsum_config = "ab,bc->ac"} : (tensor<2x3xf32>, tensor<5x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
