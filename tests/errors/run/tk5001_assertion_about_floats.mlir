// The arguments of an assertion's message must be integers.
// RUN: run
// ERROR: TK5001 at 7:3
func.func @main() {
  %p = stablehlo.constant dense<false> : tensor<i1>
  %n = stablehlo.constant dense<1.5> : tensor<f32>
  stablehlo.custom_call @shape_assertion(%p, %n) {error_message = "a must be {0}", has_side_effect = true} : (tensor<i1>, tensor<f32>) -> ()
  return
}
