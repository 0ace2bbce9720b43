// Dimensions are counted from 0.
// RUN: check
// ERROR: TK2201 at 5:8
func.func @main(%x: tensor<2xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.concatenate"(%x, %x) {dimension = -1 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
