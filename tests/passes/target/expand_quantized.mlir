// Quantized numbers become integers, and arithmetic on them uses the reals that they represent.
// RUN: opt --target host --passes=expand-quantized
// ACCEPTED: a by expand.quantized
func.func @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
  %a = stablehlo.uniform_quantize %x : (tensor<3xf32>) -> tensor<3x!quant.uniform<i8:f32, 2.0:-4>>
  %b = stablehlo.uniform_quantize %y : (tensor<3xf32>) -> tensor<3x!quant.uniform<i8<-8:7>:f32, 0.5:3>>
  %c = stablehlo.add %a, %b : (tensor<3x!quant.uniform<i8:f32, 2.0:-4>>, tensor<3x!quant.uniform<i8<-8:7>:f32, 0.5:3>>) -> tensor<3x!quant.uniform<i8:f32, 4.0:1>>
  %d = stablehlo.uniform_dequantize %c : (tensor<3x!quant.uniform<i8:f32, 4.0:1>>) -> tensor<3xf32>
  return %d : tensor<3xf32>
}
