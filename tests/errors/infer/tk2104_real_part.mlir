// The real part of complex<f32> is f32.
// RUN: check
// ERROR: TK2104 at 5:8
func.func @main(%x: tensor<2xcomplex<f32>>) -> tensor<2xf64> {
  %0 = "stablehlo.real"(%x) : (tensor<2xcomplex<f32>>) -> tensor<2xf64>
  return %0 : tensor<2xf64>
}
