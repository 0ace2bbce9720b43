// Two meshes called @m.
// RUN: check
// ERROR: TK1505 at 5:1
sdy.mesh @m = <["a"=2]>
sdy.mesh @m = <["a"=4]>
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
