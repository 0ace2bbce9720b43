// The rank of an array must be known to run it.
// RUN: run --seed=1
// ERROR: TK5001 at 5:8
func.func @main(%x: tensor<2xf32>) -> tensor<*xf32> {
  %0 = "stablehlo.custom_call"(%x) {call_target_name = "f"} : (tensor<2xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}
