// A token holds no numbers.
// RUN: check
// ERROR: TK2015 at 5:8
func.func @main(%t: !stablehlo.token) -> !stablehlo.token {
  %0 = "stablehlo.negate"(%t) : (!stablehlo.token) -> !stablehlo.token
  return %0 : !stablehlo.token
}
