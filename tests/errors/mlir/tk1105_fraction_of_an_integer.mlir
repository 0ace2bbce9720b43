// 1.5 is not an i32.
// RUN: check
// ERROR: TK1105 at 5:58
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.reduce_precision"(%x) {exponent_bits = 1.5 : i32, mantissa_bits = 3 : i32} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
