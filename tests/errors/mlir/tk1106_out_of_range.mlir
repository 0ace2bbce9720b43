// 300 is out of range for i8.
// RUN: check
// ERROR: TK1106 at 5:37
func.func @main() -> tensor<2xi8> {
  %0 = stablehlo.constant dense<[1, 300]> : tensor<2xi8>
  return %0 : tensor<2xi8>
}
