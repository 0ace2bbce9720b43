// The axis has 2 devices; a part of 8 of it does not exist.
// RUN: check
// ERROR: TK2613 at 11:8
sdy.mesh @mesh = <["a"=2]>
func.func @main() {
  %x = stablehlo.constant dense<1.0> : tensor<f32>
  %0:2 = "interpreter.run_parallel"(%x, %x) {programs = [[@f], [@f]]} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return
}
func.func private @f(%a: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = ["a":(1)8]>, use_global_device_ids}> ({
  ^bb0(%b: tensor<f32>, %c: tensor<f32>):
    %s = stablehlo.add %b, %c : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
