// A slice does not end before it begins.
// RUN: check
// ERROR: TK2208 at 5:8
func.func @main(%x: tensor<4xf32>) -> tensor<0xf32> {
  %0 = stablehlo.slice %x [3:2:1] : (tensor<4xf32>) -> tensor<0xf32>
  return %0 : tensor<0xf32>
}
