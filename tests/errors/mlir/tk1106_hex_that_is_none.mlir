// xyz are not hex digits.
// RUN: check
// ERROR: TK1106 at 5:33
func.func @main() -> tensor<2xi16> {
  %0 = stablehlo.constant dense<"0xxyz01234"> : tensor<2xi16>
  return %0 : tensor<2xi16>
}
