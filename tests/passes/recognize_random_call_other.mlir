// A call of that name with other operands is a different function.
// RUN: opt --passes=recognize-random
// ACCEPTED: none
func.func public @main(%k: tensor<3xui32>) -> tensor<3xui32> {
  %0 = stablehlo.custom_call @cu_threefry2x32(%k, %k) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
  return %0 : tensor<3xui32>
}
