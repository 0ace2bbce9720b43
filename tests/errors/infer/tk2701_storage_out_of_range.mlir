// 255 is out of range for signed 8 bits.
// RUN: check
// ERROR: TK2701 at 4:17
func.func @main(%x: tensor<2x!quant.uniform<i8<0:255>:f32, 0.5>>) -> tensor<2xf32> {
  %0 = stablehlo.uniform_dequantize %x : (tensor<2x!quant.uniform<i8<0:255>:f32, 0.5>>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
