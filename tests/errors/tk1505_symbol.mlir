func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @nowhere(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// A function that is not there.
// RUN: check
// ERROR: TK1505 at 0:0
