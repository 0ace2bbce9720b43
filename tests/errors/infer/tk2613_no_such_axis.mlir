// The mesh has an axis "a" and none called "b".
// RUN: check
// ERROR: TK2613 at 6:8
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = sdy.sharding_constraint %x <@mesh, [{"b"}]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}
