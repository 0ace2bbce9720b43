// Sizes known only at run time: 2 and 3.
// RUN: run
// ERROR: TK5010 at 9:8
func.func @main() -> tensor<?xf32> {
  %s = stablehlo.constant dense<2> : tensor<1xi64>
  %t = stablehlo.constant dense<3> : tensor<1xi64>
  %x = "stablehlo.dynamic_iota"(%s) {iota_dimension = 0 : i64} : (tensor<1xi64>) -> tensor<?xf32>
  %y = "stablehlo.dynamic_iota"(%t) {iota_dimension = 0 : i64} : (tensor<1xi64>) -> tensor<?xf32>
  %0 = "stablehlo.add"(%x, %y) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
