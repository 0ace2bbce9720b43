// LAPACK would abort the process on a NaN; the call returns -4 instead, and JAX turns the results into NaNs.
// RUN: run
func.func @main() -> tensor<2xi32> {
  %a = stablehlo.constant dense<[[[1.0, 0x7FC00000], [0.0, 1.0]], [[1.0, 0x7F800000], [0.0, 1.0]]]> : tensor<2x2x2xf32>
  %0:5 = stablehlo.custom_call @lapack_sgeev_ffi(%a) {mhlo.backend_config = {compute_left = 78 : ui8, compute_right = 78 : ui8}} : (tensor<2x2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2x2xcomplex<f32>>, tensor<2x2x2xcomplex<f32>>, tensor<2xi32>)
  return %0#4 : tensor<2xi32>
}
// VALUES: out_0: s32[2] {-4, -4}
