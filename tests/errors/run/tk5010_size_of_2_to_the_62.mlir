// An impossible array size, known only at run time.
// RUN: run
// ERROR: TK5010 at 6:8
func.func @main() -> tensor<?xf32> {
  %s = stablehlo.constant dense<4611686018427387904> : tensor<1xi64>
  %0 = "stablehlo.dynamic_iota"(%s) {iota_dimension = 0 : i64} : (tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
