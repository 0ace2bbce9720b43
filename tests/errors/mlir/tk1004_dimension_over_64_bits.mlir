// Twenty digits.
// RUN: check
// ERROR: TK1004 at 4:28
func.func @main(%x: tensor<99999999999999999999xf32>) {
  return
}
