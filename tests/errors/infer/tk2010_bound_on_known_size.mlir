// A bound limits a dynamic dimension; this one is static.
// RUN: check
// ERROR: TK2010 at 5:8
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @f(%x) : (tensor<4xf32>) -> tensor<4xf32, #stablehlo.bounds<9>>
  return %x : tensor<4xf32>
}
