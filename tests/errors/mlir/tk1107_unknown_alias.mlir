// #a is not defined.
// RUN: check
// ERROR: TK1107 at 5:74
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.custom_call"(%x) {call_target_name = "f", mhlo.thing = #a} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
