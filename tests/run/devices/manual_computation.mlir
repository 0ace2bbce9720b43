// Each of two devices has half of x; the sum over both is on each, so the halves of the result are
// equal, and each device adds its own number.
// RUN: run
sdy.mesh @mesh = <["x"=2]>
func.func @main() -> tensor<4xi32> {
  %x = stablehlo.constant dense<[1, 2, 30, 40]> : tensor<4xi32>
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%half: tensor<2xi32>) {
    %sum = "stablehlo.all_reduce"(%half) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %add = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %add : tensor<i32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids} : (tensor<2xi32>) -> tensor<2xi32>
    %id = stablehlo.partition_id : tensor<ui32>
    %number = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %numbers = stablehlo.broadcast_in_dim %number, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %mine = stablehlo.add %sum, %numbers : tensor<2xi32>
    sdy.return %mine : tensor<2xi32>
  } : (tensor<4xi32>) -> tensor<4xi32>
  check.expect_eq_const %0, dense<[31, 42, 32, 43]> : tensor<4xi32>
  func.return %0 : tensor<4xi32>
}
// CHECKS: 1
// VALUES: out_0: s32[4] {31, 42, 32, 43}
