// A name for an op without results.
// RUN: check
// ERROR: TK1111 at 5:3
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0:0 = "stablehlo.negate"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %x : tensor<2xf32>
}
