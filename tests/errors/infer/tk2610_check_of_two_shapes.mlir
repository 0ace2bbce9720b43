// A check compares arrays of one shape.
// RUN: check
// ERROR: TK2610 at 5:3
func.func @main(%x: tensor<2xf32>, %y: tensor<3xf32>) {
  check.expect_eq %x, %y : tensor<2xf32>, tensor<3xf32>
  return
}
