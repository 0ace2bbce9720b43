// One expresses f32, the other bf16.
// RUN: check
// ERROR: TK2703 at 5:8
func.func @main(%x: tensor<2x!quant.uniform<i8:f32, 0.5>>, %y: tensor<2x!quant.uniform<i8:bf16, 0.5>>) -> tensor<2x!quant.uniform<i8:f32, 0.5>> {
  %0 = "stablehlo.add"(%x, %y) : (tensor<2x!quant.uniform<i8:f32, 0.5>>, tensor<2x!quant.uniform<i8:bf16, 0.5>>) -> tensor<2x!quant.uniform<i8:f32, 0.5>>
  return %0 : tensor<2x!quant.uniform<i8:f32, 0.5>>
}
