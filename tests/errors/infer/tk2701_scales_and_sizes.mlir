// Dimension 0 is 3 and has two scales.
// RUN: check
// ERROR: TK2701 at 5:8
func.func @main(%x: tensor<3xf32>) -> tensor<3x!quant.uniform<i8:f32:0, {0.5, 0.25}>> {
  %0 = stablehlo.uniform_quantize %x : (tensor<3xf32>) -> tensor<3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  return %0 : tensor<3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
}
