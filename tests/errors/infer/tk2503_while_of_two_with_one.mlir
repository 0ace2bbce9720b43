// The loop carries two values, its regions take one.
// RUN: check
// ERROR: TK2503 at 5:10
func.func @main(%x: tensor<i32>) -> tensor<i32> {
  %0:2 = "stablehlo.while"(%x, %x) ({
  ^bb0(%a: tensor<i32>):
    %p = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%a: tensor<i32>):
    stablehlo.return %a : tensor<i32>
  }) : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)
  return %0#0 : tensor<i32>
}
