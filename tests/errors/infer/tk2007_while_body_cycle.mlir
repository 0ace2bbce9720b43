// A function that runs itself in a loop.
// RUN: check
// ERROR: TK2007 at 6:10
module {
  func.func public @main(%x: tensor<i32>) -> tensor<i32> {
    %0 = call @main(%x) : (tensor<i32>) -> tensor<i32>
    return %0 : tensor<i32>
  }
}
