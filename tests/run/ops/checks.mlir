// Checks are counted; two programs in a file.
// RUN: run
func.func @main() {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = stablehlo.add %0, %0 : tensor<2xf32>
  check.expect_eq_const %1, dense<[2.0, 4.0]> : tensor<2xf32>
  return
}

// -----

// No function here: skipped.

// -----

func.func @only() {
  %0 = stablehlo.constant dense<5> : tensor<i32>
  check.expect_eq_const %0, dense<5> : tensor<i32>
  check.expect_eq %0, %0 : tensor<i32>
  func.return
}
// CHECKS: 3
