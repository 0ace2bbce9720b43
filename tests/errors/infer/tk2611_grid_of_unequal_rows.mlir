// Every replica must have the same number of partitions.
// RUN: check
// ERROR: TK2611 at 5:10
func.func @main(%x: tensor<f32>) {
  %0:3 = "interpreter.run_parallel"(%x, %x, %x) {programs = [[@f, @f], [@f]]} : (tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
  return
}
func.func private @f(%a: tensor<f32>) -> tensor<f32> {
  return %a : tensor<f32>
}
