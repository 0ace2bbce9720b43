func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.custom_call @f(%x) {backend_config = "abc} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// A string without an end.
// RUN: check
// ERROR: TK1102 at 0:0
