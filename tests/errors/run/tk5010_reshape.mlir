// Four elements do not fill five.
// RUN: run
// ERROR: TK5010 at 7:8
func.func @main() -> tensor<?xf32> {
  %x = stablehlo.constant dense<1.0> : tensor<4xf32>
  %s = stablehlo.constant dense<5> : tensor<1xi64>
  %0 = "stablehlo.dynamic_reshape"(%x, %s) : (tensor<4xf32>, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
