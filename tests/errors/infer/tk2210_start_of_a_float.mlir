// A start is an integer.
// RUN: check
// ERROR: TK2210 at 5:8
func.func @main(%x: tensor<4xf32>, %i: tensor<f32>) -> tensor<2xf32> {
  %0 = "stablehlo.dynamic_slice"(%x, %i) {slice_sizes = array<i64: 2>} : (tensor<4xf32>, tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
