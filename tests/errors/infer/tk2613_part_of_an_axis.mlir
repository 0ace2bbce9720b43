// The axis has 2 devices; a subaxis of 8 does not exist.
// RUN: check
// ERROR: TK2613 at 6:8
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.sharding_constraint %x <@mesh, [{"a":(1)8}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
