// A matrix with three letters.
// RUN: check
// ERROR: TK2411 at 5:8
func.func @main(%x: tensor<2x3xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.unary_einsum"(%x) {einsum_config = "abc->a"} : (tensor<2x3xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
