// A number must have an integer or float type.
// RUN: check
// ERROR: TK1105 at 5:69
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.custom_call @f(%x) {mhlo.backend_config = {a = 4 : ui8f4}, api_version = 4 : i32} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
