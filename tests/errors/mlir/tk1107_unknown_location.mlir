// #loc7 is not defined.
// RUN: check
// ERROR: TK1107 at 5:48
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.negate %x : tensor<2xf32> loc(#loc7)
  return %0 : tensor<2xf32>
}
