// A region has a single block.
// RUN: check
// ERROR: TK1112 at 6:1
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
^bb1:
  return %x : tensor<2xf32>
}
