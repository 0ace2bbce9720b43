// #a is defined twice.
// RUN: check
// ERROR: TK1107 at 5:1
#a = 1
#a = 2
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
