// An extra brace.
// RUN: check
// ERROR: TK1101 at 7:1
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
}
