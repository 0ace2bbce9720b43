// A number is not a sharding.
// RUN: check
// ERROR: TK1511 at 4:17
func.func @main(%x: tensor<2xf32> {sdy.sharding = 5 : i32}) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
