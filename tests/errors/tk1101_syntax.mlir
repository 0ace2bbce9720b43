func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %x, } : tensor<2xf32>
  return %0 : tensor<2xf32>
}
// A brace where an operand must be.
// RUN: check
// ERROR: TK1101 at 0:0
