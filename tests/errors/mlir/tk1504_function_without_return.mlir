// A function ends in a return.
// RUN: check
// ERROR: TK1504 at 6:1
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.negate %x : tensor<2xf32>
}
