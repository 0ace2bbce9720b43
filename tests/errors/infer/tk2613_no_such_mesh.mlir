// No mesh is called @nowhere.
// RUN: check
// ERROR: TK2613 at 4:17
func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@nowhere, [{"a"}]>}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
