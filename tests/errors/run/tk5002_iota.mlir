// The same without an operand.
// RUN: run
// ERROR: TK5002 at 5:8
func.func @main() -> tensor<1099511627776xi32> {
  %0 = stablehlo.iota dim = 0 : tensor<1099511627776xi32>
  return %0 : tensor<1099511627776xi32>
}
