// A mesh without devices along one axis.
// RUN: check
// ERROR: TK1511 at 4:20
sdy.mesh @mesh = <["x"=0, "y"=3]>
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
