// Parameters that a training step replaces, and a cache whose rows are replaced in place: both
// should be donated.
// RUN: lint --rules missing-donation
// OUT: lint.missing-donation
// OUT: params['b'], params['w'] of 2.1 MB are updated into results of the same type
// OUT: saves 2.1 MB if the caller does not use them again
// OUT: cache of 4.19 MB is updated
// RUN: lint --rules missing-donation --json
// OUT: "fix":{"donate_argnums":[0,1],"kind":"donate_argnums","names":["params['b']","params['w']"]}
// OUT: "rule":"lint.missing-donation"
// OUT: "severity":"warning"
// OUT: "fix":{"donate_argnums":[0],"kind":"donate_argnums","names":["cache"]}
module @train {
  func.func public @main(%arg0: tensor<1024xf32> loc("params['b']"), %arg1: tensor<512x1024xf32> loc("params['w']"), %g0: tensor<1024xf32>, %g1: tensor<512x1024xf32>) -> (tensor<1024xf32> {jax.result_info = "result['b']"}, tensor<512x1024xf32> {jax.result_info = "result['w']"}) {
    %0 = stablehlo.subtract %arg0, %g0 : tensor<1024xf32>
    %1 = stablehlo.tanh %g1 : tensor<512x1024xf32>
    %2 = stablehlo.subtract %arg1, %1 : tensor<512x1024xf32>
    return %0, %2 : tensor<1024xf32>, tensor<512x1024xf32>
  }
}
// -----
module @serve {
  func.func public @main(%arg0: tensor<2048x512xf32> loc("cache"), %row: tensor<1x512xf32>, %at: tensor<i32>) -> (tensor<2048x512xf32> {jax.result_info = "result"}) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_update_slice %arg0, %row, %at, %zero : (tensor<2048x512xf32>, tensor<1x512xf32>, tensor<i32>, tensor<i32>) -> tensor<2048x512xf32>
    return %0 : tensor<2048x512xf32>
  }
}
