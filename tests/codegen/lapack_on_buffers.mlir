// LAPACK works on the arrays in place. Unused results are not computed (the left vectors);
// a used result that the call does not compute (the right ones, mode N) is zero.
// RUN: run --backend cpu
// VALUES: out_0: f32[2,2] {2, 1, 5, 3}
// VALUES: out_1: f32[2,2,2] {0, 0, 0, 0, 0, 0, 0, 0}
// VALUES: out_2: s32[2] {0, 0}
// RUN: run
// VALUES: out_0: f32[2,2] {2, 1, 5, 3}
// VALUES: out_1: f32[2,2,2] {0, 0, 0, 0, 0, 0, 0, 0}
// VALUES: out_2: s32[2] {0, 0}
module @m {
  func.func public @main() -> (tensor<2x2xf32>, tensor<2x2x2xf32>, tensor<2xi32>) {
    %a = stablehlo.constant dense<[[[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]], [[0.0, 5.0], [0.0, 0.0], [3.0, 0.0]]]> : tensor<2x3x2xf32>
    %0:5 = stablehlo.custom_call @lapack_sgesdd_ffi(%a) {mhlo.backend_config = {mode = 78 : ui8}} : (tensor<2x3x2xf32>) -> (tensor<2x3x2xf32>, tensor<2x2xf32>, tensor<2x3x3xf32>, tensor<2x2x2xf32>, tensor<2xi32>)
    return %0#1, %0#3, %0#4 : tensor<2x2xf32>, tensor<2x2x2xf32>, tensor<2xi32>
  }
}
