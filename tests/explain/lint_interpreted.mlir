// No buffer can hold a result of unknown size: the interpreter runs the program.
// RUN: lint
// OUT: lint.interpreted  0 us  the program
// OUT: the reference interpreter runs the whole program, which is slow: result 0 is f32[?], whose size is unbounded
// RUN: lint --json
// OUT: "rule":"lint.interpreted"
module @m {
  func.func public @main(%arg0: tensor<8xi1>, %arg1: tensor<8xf32>) -> tensor<?xf32> {
    %0 = "stablehlo.custom_call"(%arg1) {call_target_name = "nonzero"} : (tensor<8xf32>) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}
