// Concatenated arrays have one element type.
// RUN: check
// ERROR: TK2102 at 5:8
func.func @main(%x: tensor<2xf32>, %y: tensor<2xi32>) -> tensor<4xf32> {
  %0 = "stablehlo.concatenate"(%x, %y) {dimension = 0 : i64} : (tensor<2xf32>, tensor<2xi32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
