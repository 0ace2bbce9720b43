// No op may follow a return.
// RUN: check
// ERROR: TK1510 at 6:8
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
  %0 = stablehlo.negate %x : tensor<2xf32>
}
