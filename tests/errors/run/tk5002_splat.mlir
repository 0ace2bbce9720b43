// A splat is one element until all of them are needed.
// RUN: run --backend=interp
// ERROR: TK5002 at 5:8
func.func @main() -> tensor<144115188075855872xf32> {
  %0 = stablehlo.constant dense<1.0> : tensor<144115188075855872xf32>
  return %0 : tensor<144115188075855872xf32>
}
