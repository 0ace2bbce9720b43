// RUN: check --round-trip
module @m {
  func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.constant dense<1.0> : tensor<f32>
    %1 = stablehlo.pad %arg0, %0, low = [], high = [], interior = [] : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.negate %1 : tensor<f32>
    return %2 : tensor<f32>
  }
}
