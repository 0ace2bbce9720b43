// A check that does not hold.
// RUN: run
// ERROR: TK6012
// ERR: tk6012_check.mlir:8
func.func @main() {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  // The second element is another.
  check.expect_eq_const %0, dense<[1, 3]> : tensor<2xi32>
  return
}
