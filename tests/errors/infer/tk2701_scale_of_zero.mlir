// A scale of 0 would make every number 0.
// RUN: check
// ERROR: TK2701 at 4:17
func.func @main(%x: tensor<2x!quant.uniform<i8:f32, 0.0>>) -> tensor<2xf32> {
  %0 = stablehlo.uniform_dequantize %x : (tensor<2x!quant.uniform<i8:f32, 0.0>>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
