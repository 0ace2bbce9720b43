// Another type is returned than declared.
// RUN: check
// ERROR: TK1506 at 4:11
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.constant dense<1> : tensor<i32>
  return %0 : tensor<i32>
}
