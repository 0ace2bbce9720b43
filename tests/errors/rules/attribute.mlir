// RUN: opt --user-rules %s %s
// ERROR: TK3013 at 5:13
// ERR: unknown attribute or type of value: tokamak.prio
module @misspelled attributes {tokamak.prio = 1 : i64} {
  func.func @pattern(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.exponential %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @replacement(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.exponential %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
