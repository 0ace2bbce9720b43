// No element has a negative number.
// RUN: check
// ERROR: TK2501 at 5:8
func.func @main(%x: tuple<tensor<2xf32>>) -> tensor<2xf32> {
  %0 = "stablehlo.get_tuple_element"(%x) {index = -1 : i32} : (tuple<tensor<2xf32>>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
