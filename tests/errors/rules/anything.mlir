// A pattern that is a variable would match every value.
// RUN: opt --user-rules %s %s
// ERROR: TK3009 at 6:13
// ERR: which would match everything
module @anything {
  func.func @pattern(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.exponential %x : tensor<4xf32>
    return %0, %x : tensor<4xf32>, tensor<4xf32>
  }
  func.func @replacement(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.exponential %x : tensor<4xf32>
    return %0, %x : tensor<4xf32>, tensor<4xf32>
  }
}
