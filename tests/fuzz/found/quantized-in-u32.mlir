func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.uniform_quantize %x : (tensor<2xf32>) -> tensor<2x!quant.uniform<u32:f32:0, {0.1:-30, 0.5:-20}>>
  %1 = stablehlo.uniform_dequantize %0 : (tensor<2x!quant.uniform<u32:f32:0, {0.1:-30, 0.5:-20}>>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
