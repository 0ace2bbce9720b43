// A quantized and a plain array cannot be added.
// RUN: check
// ERROR: TK2702 at 5:8
func.func @main(%x: tensor<2x!quant.uniform<i8:f32, 0.5>>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.add"(%x, %y) : (tensor<2x!quant.uniform<i8:f32, 0.5>>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
