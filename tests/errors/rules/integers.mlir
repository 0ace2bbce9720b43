// Integers are compared exactly: a shift does not round as a division does.
// RUN: opt --user-rules %s %s
// ERROR: TK3008 at 5:13
module @halve {
  func.func @pattern(%x: tensor<4xi32>) -> tensor<4xi32> {
    %two = stablehlo.constant dense<2> : tensor<4xi32>
    %0 = stablehlo.divide %x, %two : tensor<4xi32>
    return %0 : tensor<4xi32>
  }
  func.func @replacement(%x: tensor<4xi32>) -> tensor<4xi32> {
    %one = stablehlo.constant dense<1> : tensor<4xi32>
    %0 = stablehlo.shift_right_arithmetic %x, %one : tensor<4xi32>
    return %0 : tensor<4xi32>
  }
}
