// The specified shape does not match the result.
// RUN: run
// ERROR: TK5010 at 8:10
func.func @main() -> (tensor<?x2xf32>, tensor<?x2xi32>) {
  %x = stablehlo.constant dense<[[1.0, 3.0, 2.0], [6.0, 5.0, 4.0]]> : tensor<2x3xf32>
  %k = stablehlo.constant dense<2> : tensor<i32>
  %shape = stablehlo.constant dense<3> : tensor<2xi32>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k, %shape, %shape) {indices_of_shape_operands = dense<[2, 3]> : tensor<2xi64>} : (tensor<2x3xf32>, tensor<i32>, tensor<2xi32>, tensor<2xi32>) -> (tensor<?x2xf32>, tensor<?x2xi32>)
  return %0#0, %0#1 : tensor<?x2xf32>, tensor<?x2xi32>
}
