// An op that jumps.
// RUN: check
// ERROR: TK1112 at 5:14
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  "cf.br"(%x)[^bb1] : (tensor<2xf32>) -> ()
}
