// A complex number has parts of f32 or f64.
// RUN: check
// ERROR: TK1103 at 4:30
func.func @main(%x: tensor<2xcomplex<i32>>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
