// A vector has no LU factors.
// RUN: run
// ERROR: TK5015 at 6:8
func.func @main() -> tensor<4xf32> {
  %x = stablehlo.constant dense<1.0> : tensor<4xf32>
  %0 = stablehlo.custom_call @lapack_spotrf_ffi(%x) {mhlo.backend_config = {uplo = 76 : ui8}, api_version = 4 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
