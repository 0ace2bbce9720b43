// The elements are a vector of 2, the result a vector of 3.
// RUN: check
// ERROR: TK2017 at 5:8
func.func @main() -> tensor<3xf32> {
  %0 = "stablehlo.constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
