// The first program waits for the second, which has no all-reduce.
// RUN: run
// ERROR: TK5005 at 10:8
func.func @main() {
  %x = stablehlo.constant dense<1.0> : tensor<f32>
  %0:2 = "interpreter.run_parallel"(%x, %x) {programs = [[@f], [@g]]} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return
}
func.func private @f(%a: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%b: tensor<f32>, %c: tensor<f32>):
    %s = stablehlo.add %b, %c : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @g(%a: tensor<f32>) -> tensor<f32> {
  return %a : tensor<f32>
}
