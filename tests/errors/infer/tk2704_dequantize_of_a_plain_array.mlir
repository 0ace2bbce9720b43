// A plain array has no scale.
// RUN: check
// ERROR: TK2704 at 5:8
func.func @main(%x: tensor<2xi8>) -> tensor<2xf32> {
  %0 = "stablehlo.uniform_dequantize"(%x) : (tensor<2xi8>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
