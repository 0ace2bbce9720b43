// A nonempty array cannot be reshaped to an empty one.
// RUN: check
// ERROR: TK2206 at 5:8
func.func @main(%x: tensor<2xf32>) -> tensor<0xf32> {
  %0 = stablehlo.reshape %x : (tensor<2xf32>) -> tensor<0xf32>
  return %0 : tensor<0xf32>
}
