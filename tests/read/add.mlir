// RUN: check --round-trip
// OUT: StableHLO text, 1 computation, 2 instructions
module @m {
  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
// RUN: convert --to mlir
// AFTER:
// module @m {
//   func.func public @main(%arg0: tensor<2xf32>) -> (tensor<2xf32>) {
//       %0 = "stablehlo.add"(%arg0, %arg0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
//       func.return %0 : tensor<2xf32>
//   }
// }
// RUN: convert --to hlo
// AFTER:
// HloModule m
// ENTRY main {
//   arg0 = f32[2] parameter(0)
//   ROOT add = f32[2] add(arg0, arg0)
// }
