// A function that is merely named threefry2x32 is unchanged.
// RUN: opt --passes=recognize-random
// ACCEPTED: none
func.func public @main(%k: tensor<ui32>, %x: tensor<3xui32>) -> (tensor<3xui32>, tensor<3xui32>) {
  %0:2 = call @threefry2x32(%k, %k, %x, %x) : (tensor<ui32>, tensor<ui32>, tensor<3xui32>, tensor<3xui32>) -> (tensor<3xui32>, tensor<3xui32>)
  return %0#0, %0#1 : tensor<3xui32>, tensor<3xui32>
}
func.func private @threefry2x32(%k0: tensor<ui32>, %k1: tensor<ui32>, %x0: tensor<3xui32>, %x1: tensor<3xui32>) -> (tensor<3xui32>, tensor<3xui32>) {
  %b = stablehlo.broadcast_in_dim %k0, dims = [] : (tensor<ui32>) -> tensor<3xui32>
  %0 = stablehlo.xor %x0, %b : tensor<3xui32>
  %1 = stablehlo.shift_right_logical %x1, %b : tensor<3xui32>
  return %0, %1 : tensor<3xui32>, tensor<3xui32>
}
