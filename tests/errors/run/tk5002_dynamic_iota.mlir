// A size of 2^40, known only at run time.
// RUN: run
// ERROR: TK5002 at 6:8
func.func @main() -> tensor<?xf32> {
  %s = stablehlo.constant dense<1099511627776> : tensor<1xi64>
  %0 = "stablehlo.dynamic_iota"(%s) {iota_dimension = 0 : i64} : (tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
