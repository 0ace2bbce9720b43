// A rule whose replacement computes something else.
// RUN: opt --user-rules %s %s
// ERROR: TK3008 at 8:13
// ERR: rule double: for x = 
// ERR: the pattern gives
// ERR: note: element 0 of result 0, variables f32[4]
module @double {
  func.func @pattern(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %x, %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @replacement(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.multiply %x, %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
