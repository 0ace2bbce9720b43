// JAX's check of a condition on symbolic shapes.
// RUN: run
// ERROR: TK5011 at 6:3
func.func @main() {
  %p = stablehlo.constant dense<false> : tensor<i1>
  stablehlo.custom_call @shape_assertion(%p) {error_message = "a must be b", has_side_effect = true} : (tensor<i1>) -> ()
  return
}
