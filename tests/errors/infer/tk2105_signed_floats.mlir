// SIGNED compares integers.
// RUN: check
// ERROR: TK2105 at 5:8
func.func @main(%x: tensor<2xf32>) -> tensor<2xi1> {
  %0 = stablehlo.compare LT, %x, %x, SIGNED : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  return %0 : tensor<2xi1>
}
