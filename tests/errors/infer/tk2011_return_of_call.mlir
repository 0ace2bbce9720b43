// The sum of two vectors of 4 is a vector of 4, in StableHLO too.
// RUN: check
// ERROR: TK2011 at 5:8
func.func @main(%x: tensor<4xf32>) -> tensor<5xf32> {
  %0 = "stablehlo.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
