// Two elements for a vector of three.
// RUN: check
// ERROR: TK1106 at 5:42
func.func @main() -> tensor<3xf32> {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<3xf32>
  return %0 : tensor<3xf32>
}
