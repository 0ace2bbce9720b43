// LAPACK's cholesky is replaced by ours if only its success is used: a matrix with a factor, and one without.
// RUN: run --backend cpu
// VALUES: out_0: f32[2,2,2] {2, 2, 1, 2, nan, nan, nan, nan}
// RUN: run
// VALUES: out_0: f32[2,2,2] {2, 2, 1, 2, nan, nan, nan, nan}
// RUN: kernels --vector-bits 128 --no-text --passes dce
// OUT: library cholesky f32 2 x 2 x 2
module @m {
  func.func public @main() -> tensor<2x2x2xf32> {
    %a = stablehlo.constant dense<[[[4.0, 2.0], [2.0, 5.0]], [[1.0, 2.0], [2.0, 1.0]]]> : tensor<2x2x2xf32>
    %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {backend_config = "", mhlo.backend_config = {uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "1"}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>], result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>]} : (tensor<2x2x2xf32>) -> (tensor<2x2x2xf32>, tensor<2xi32>)
    %c = stablehlo.constant dense<0> : tensor<2xi32>
    %1 = stablehlo.compare EQ, %0#1, %c, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %nan = stablehlo.constant dense<0x7FC00000> : tensor<2x2x2xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<2xi1>) -> tensor<2x2x2xi1>
    %3 = stablehlo.select %2, %0#0, %nan : tensor<2x2x2xi1>, tensor<2x2x2xf32>
    return %3 : tensor<2x2x2xf32>
  }
}
