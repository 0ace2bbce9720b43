// A loop that uses a value from outside.
// RUN: run
func.func @main() {
  %step = stablehlo.constant dense<3> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.while(%i = %zero) : tensor<i32>
    cond {
      %limit = stablehlo.constant dense<10> : tensor<i32>
      %c = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %n = stablehlo.add %i, %step : tensor<i32>
      stablehlo.return %n : tensor<i32>
    }
  check.expect_eq_const %0, dense<12> : tensor<i32>
  return
}
// CHECKS: 1
