// A replacement that contains its pattern.
// RUN: opt --user-rules %s %s
// ERROR: TK3011 at 5:13
module @turn {
  func.func @pattern(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %x, %y : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @replacement(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %y, %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
