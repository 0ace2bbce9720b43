// %0 is two results, numbered 0 and 1.
// RUN: check
// ERROR: TK1108 at 6:10
func.func @main(%x: tensor<4xf32>) -> tensor<f32> {
  %0:2 = "stablehlo.custom_call"(%x) {call_target_name = "f"} : (tensor<4xf32>) -> (tensor<f32>, tensor<f32>)
  return %0#2 : tensor<f32>
}
