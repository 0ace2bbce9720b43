// \q is not an escape.
// RUN: check
// ERROR: TK1102 at 5:56
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.custom_call"(%x) {call_target_name = "f\q"} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
