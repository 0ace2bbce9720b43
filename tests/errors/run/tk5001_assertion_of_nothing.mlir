// An empty condition is invalid: the call is not understood, and nothing is read past its end.
// RUN: run
// ERROR: TK5001 at 6:3
func.func @main() {
  %p = stablehlo.constant dense<> : tensor<0xi1>
  stablehlo.custom_call @shape_assertion(%p) {error_message = "a must be b", has_side_effect = true} : (tensor<0xi1>) -> ()
  return
}
