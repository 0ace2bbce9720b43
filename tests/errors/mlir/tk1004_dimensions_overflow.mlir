// 2^31 times 2^31 elements are over the limit of 2^58.
// RUN: check
// ERROR: TK1004 at 4:28
func.func @main(%x: tensor<2147483648x2147483648xf32>) {
  return
}
