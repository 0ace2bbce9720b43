// linalg is not a supported dialect.
// RUN: check
// ERROR: TK1501 at 5:8
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "linalg.transpose"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
