// A list cannot have as many elements as it claims: no memory is allocated for them.
// RUN: check
// ERROR: TK1106 at 5:33
func.func @main() -> tensor<144115188075855872xf32> {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<144115188075855872xf32>
  return %0 : tensor<144115188075855872xf32>
}
