// The same with an iota of two dimensions, a broadcast of a size-one dimension and a slice of a concatenate.
// RUN: opt
// SAME-AS: movement.hlo
func.func public @main(%x: tensor<4x1xf32>) -> tensor<4x3xf32> {
  %i = stablehlo.iota dim = 0 : tensor<4x3xi32>
  %f = stablehlo.convert %i : (tensor<4x3xi32>) -> tensor<4x3xf32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x3xf32>
  %1 = stablehlo.concatenate %f, %0, dim = 0 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
  %2 = stablehlo.slice %1 [4:8, 0:3] : (tensor<8x3xf32>) -> tensor<4x3xf32>
  %3 = stablehlo.subtract %2, %f : tensor<4x3xf32>
  return %3 : tensor<4x3xf32>
}
