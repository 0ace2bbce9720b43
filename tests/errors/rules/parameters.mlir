// RUN: opt --user-rules %s %s
// ERROR: TK3007 at 5:13
// ERR: the pattern has 1 parameters, the replacement 2
module @scaled {
  func.func @pattern(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.exponential %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @replacement(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.multiply %x, %y : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
