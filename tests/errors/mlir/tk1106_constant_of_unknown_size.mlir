// A constant has a size.
// RUN: check
// ERROR: TK1106 at 5:40
func.func @main() -> tensor<?xf32> {
  %0 = stablehlo.constant dense<1.0> : tensor<?xf32>
  return %0 : tensor<?xf32>
}
