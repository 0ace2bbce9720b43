// No type is called f31.
// RUN: check
// ERROR: TK1103 at 4:30
func.func @main(%x: tensor<2xf31>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
