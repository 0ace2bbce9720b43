// %1 is not defined yet.
// RUN: check
// ERROR: TK1108 at 5:25
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.negate %1 : tensor<2xf32>
  %1 = stablehlo.negate %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}
