// RUN: opt --user-rules %s %s
// ERROR: TK3013
// ERR: rules: a rule has the functions @pattern and @replacement
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
