// uplo must be L or U; LAPACK would abort the process on any other letter.
// RUN: run
// ERROR: TK5015 at 6:10
func.func @main() -> tensor<2x2xf32> {
  %x = stablehlo.constant dense<1.0> : tensor<2x2xf32>
  %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%x) {mhlo.backend_config = {uplo = 88 : ui8}, api_version = 4 : i32} : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
  return %0#0 : tensor<2x2xf32>
}
