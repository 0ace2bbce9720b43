func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.negate %y : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// A value that is not there.
// RUN: check
// ERROR: TK1108 at 0:0
