// #a is defined by #a.
// RUN: check
// ERROR: TK1107 at 4:7
#a = [#a]
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.custom_call"(%x) {call_target_name = "f", mhlo.thing = #a} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
