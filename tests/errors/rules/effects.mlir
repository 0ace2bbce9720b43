// RUN: opt --user-rules %s %s
// ERROR: TK3010 at 5:13
// ERR: rule calls: its replacement has a side effect: custom-call
module @calls {
  func.func @pattern(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.exponential %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @replacement(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @report(%x) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
