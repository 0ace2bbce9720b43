// Padding of 2^62.
// RUN: run
// ERROR: TK5014 at 9:8
func.func @main() -> tensor<?xf32> {
  %x = stablehlo.constant dense<1.0> : tensor<4xf32>
  %v = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.constant dense<4611686018427387904> : tensor<1xi64>
  %z = stablehlo.constant dense<0> : tensor<1xi64>
  %0 = "stablehlo.dynamic_pad"(%x, %v, %p, %z, %z) : (tensor<4xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
