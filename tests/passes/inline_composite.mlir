// A composite is replaced by its decomposition.
// RUN: opt --passes=inline,dce
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.composite "my.twice" %x {decomposition = @twice} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// AFTER:
// HloModule module
// ENTRY main {
//   x = f32[4] parameter(0)
//   ROOT add = f32[4] add(x, x), metadata={op_name="composite:my.twice"}
// }
