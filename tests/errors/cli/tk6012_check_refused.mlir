// 1 is not 2, and the program reports the location.
// RUN: run
// ERROR: TK6012 at 7:3
func.func @main() {
  %0 = stablehlo.constant dense<1.0> : tensor<f32>
  %1 = stablehlo.constant dense<2.0> : tensor<f32>
  check.expect_eq %0, %1 : tensor<f32>
  return
}
