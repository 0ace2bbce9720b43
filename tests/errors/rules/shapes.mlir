// RUN: opt --user-rules %s %s
// ERROR: TK3007 at 5:13
// ERR: rule sums: the pattern returns f32[4], the replacement f32[], for variables f32[4]
module @sums {
  func.func @pattern(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.exponential %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @replacement(%x: tensor<4xf32>) -> tensor<f32> {
    %0 = stablehlo.constant dense<1.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}
