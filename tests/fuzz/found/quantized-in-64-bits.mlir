func.func @interpreter.probe(%x: tensor<3xf32>) -> tensor<3x!quant.uniform<i64:f32stablehlo.not :0, {0, 0.25}>> stablehlo.rng
  %0 = stablehlo.uniform_quantize %x : (tensor<5xf32>) -> tensor<3x!quant.uniform quant.uniform<i64:f32:0, 7.5, 2}>>
}
