// Donated arguments; small ones; a function of an argument, which the caller may still need.
// RUN: lint --rules missing-donation
// OUT: no lints
// OUT: no lints
// OUT: no lints
module @donated {
  func.func public @main(%arg0: tensor<512x1024xf32> {tf.aliasing_output = 0 : i32} loc("params['w']"), %g: tensor<512x1024xf32>) -> (tensor<512x1024xf32> {jax.result_info = "result['w']"}) {
    %0 = stablehlo.subtract %arg0, %g : tensor<512x1024xf32>
    return %0 : tensor<512x1024xf32>
  }
}
// -----
module @small {
  func.func public @main(%arg0: tensor<64xf32> loc("params['w']"), %g: tensor<64xf32>) -> (tensor<64xf32> {jax.result_info = "result['w']"}) {
    %0 = stablehlo.subtract %arg0, %g : tensor<64xf32>
    return %0 : tensor<64xf32>
  }
}
// -----
module @function {
  func.func public @main(%arg0: tensor<512x1024xf32> loc("x")) -> (tensor<512x1024xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.tanh %arg0 : tensor<512x1024xf32>
    return %0 : tensor<512x1024xf32>
  }
}
