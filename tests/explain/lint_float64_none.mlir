// Arguments in f64, a scalar in f64; an f64 sum between f32 arrays is only noted.
// RUN: lint --rules float64
// OUT: no lints
// OUT: no lints
// OUT: lint.float64  note  model.py:3
// OUT: no warnings
module @wide {
  func.func public @main(%arg0: tensor<4096xf64>, %arg1: tensor<4096xf32>) -> tensor<4096xf64> {
    %0 = stablehlo.convert %arg1 : (tensor<4096xf32>) -> tensor<4096xf64>
    %1 = stablehlo.add %arg0, %0 : tensor<4096xf64>
    return %1 : tensor<4096xf64>
  }
}
// -----
module @scalar {
  func.func public @main(%arg0: tensor<f32>) -> tensor<f64> {
    %0 = stablehlo.convert %arg0 : (tensor<f32>) -> tensor<f64>
    return %0 : tensor<f64>
  }
}
// -----
module @sum {
  func.func public @main(%arg0: tensor<4096xf32>) -> tensor<f32> {
    %0 = stablehlo.convert %arg0 : (tensor<4096xf32>) -> tensor<4096xf64> loc("model.py":3:0)
    %z = stablehlo.constant dense<0.0> : tensor<f64>
    %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4096xf64>, tensor<f64>) -> tensor<f64>
    %2 = stablehlo.convert %1 : (tensor<f64>) -> tensor<f32>
    return %2 : tensor<f32>
  }
}
