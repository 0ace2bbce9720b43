// An op with a successor block.
// RUN: check
// ERROR: TK1112 at 5:30
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.negate"(%x)[^bb1] : (tensor<2xf32>) -> tensor<2xf32>
}
