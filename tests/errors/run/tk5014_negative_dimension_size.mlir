// Without a bound, the size cannot be clamped.
// RUN: run
// ERROR: TK5014 at 7:8
func.func @main() -> tensor<?xf32> {
  %x = stablehlo.constant dense<1.0> : tensor<4xf32>
  %n = stablehlo.constant dense<-1> : tensor<i32>
  %0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<4xf32>, tensor<i32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
