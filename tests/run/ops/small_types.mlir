// int4 wraps, f8 rounds to even.
// RUN: run
func.func @main() {
  %0 = stablehlo.constant dense<[7, -8]> : tensor<2xi4>
  %1 = stablehlo.constant dense<[1, -1]> : tensor<2xi4>
  %2 = stablehlo.add %0, %1 : tensor<2xi4>
  check.expect_eq_const %2, dense<[-8, 7]> : tensor<2xi4>
  %3 = stablehlo.constant dense<[17.0, 19.0]> : tensor<2xf32>
  %4 = stablehlo.convert %3 : (tensor<2xf32>) -> tensor<2xf8E4M3FN>
  %5 = stablehlo.convert %4 : (tensor<2xf8E4M3FN>) -> tensor<2xf32>
  check.expect_eq_const %5, dense<[16.0, 20.0]> : tensor<2xf32>
  return
}
// CHECKS: 2
