// A slice to 9 of 4 elements.
// RUN: run
// ERROR: TK5014 at 9:8
func.func @main() -> tensor<?xf32> {
  %x = stablehlo.constant dense<1.0> : tensor<4xf32>
  %b = stablehlo.constant dense<0> : tensor<1xi64>
  %l = stablehlo.constant dense<9> : tensor<1xi64>
  %s = stablehlo.constant dense<1> : tensor<1xi64>
  %0 = "stablehlo.real_dynamic_slice"(%x, %b, %l, %s) : (tensor<4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
