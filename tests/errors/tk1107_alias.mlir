func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.negate %x : tensor<2xf32> loc(#loc7)
  return %0 : tensor<2xf32>
}
// An alias that is not there.
// RUN: check
// ERROR: TK1107 at 0:0
