// The infeed of a device must be a function of the module.
// RUN: check
// ERROR: TK2615 at 5:8
func.func @main(%x: tensor<f32>) {
  %0 = "interpreter.run_parallel"(%x) {infeed = [@nowhere], programs = [[@f]]} : (tensor<f32>) -> tensor<f32>
  return
}
func.func private @f(%a: tensor<f32>) -> tensor<f32> {
  return %a : tensor<f32>
}
