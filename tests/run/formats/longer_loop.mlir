// One iteration more than loop.hlo gives other values.
// RUN: tokamak run %d/loop.hlo --backend interp --seed 1 --outputs %t/longer_loop.npz
// RUN: run --backend interp --seed 1 --strict --expect %t/longer_loop.npz
// ERROR: TK6011
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %n = stablehlo.constant dense<6> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%a = %x, %i = %zero) : tensor<3xf32>, tensor<i32>
   cond {
    %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %two = stablehlo.constant dense<2.0> : tensor<3xf32>
    %1 = stablehlo.multiply %two, %a : tensor<3xf32>
    %2 = stablehlo.add %one, %i : tensor<i32>
    stablehlo.return %1, %2 : tensor<3xf32>, tensor<i32>
  }
  return %0#0 : tensor<3xf32>
}
