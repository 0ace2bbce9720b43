// Sizes are integers.
// RUN: check
// ERROR: TK2705 at 5:8
func.func @main(%x: tensor<4xf32>, %s: tensor<2xf32>) -> tensor<?x?xf32> {
  %0 = "stablehlo.dynamic_reshape"(%x, %s) : (tensor<4xf32>, tensor<2xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
