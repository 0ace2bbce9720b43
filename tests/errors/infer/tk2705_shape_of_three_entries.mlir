// The result has two dimensions.
// RUN: check
// ERROR: TK2705 at 5:8
func.func @main(%s: tensor<3xi64>) -> tensor<?x?xf32> {
  %0 = "stablehlo.dynamic_iota"(%s) {iota_dimension = 0 : i64} : (tensor<3xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
