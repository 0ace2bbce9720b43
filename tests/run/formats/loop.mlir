// The same loop as JAX writes it: values in another order, the
// bound captured, the doubling in a call, the factor times one.
// RUN: tokamak run %d/loop.hlo --backend interp --seed 1 --outputs %t/loop.npz
// RUN: run --backend interp --seed 1 --strict --expect %t/loop.npz --rtol 0 --atol 0
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %n = stablehlo.constant dense<5> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%a = %x, %i = %zero) : tensor<3xf32>, tensor<i32>
   cond {
    %1 = stablehlo.compare GT, %n, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = func.call @double(%a) : (tensor<3xf32>) -> tensor<3xf32>
    %2 = stablehlo.add %one, %i : tensor<i32>
    stablehlo.return %1, %2 : tensor<3xf32>, tensor<i32>
  }
  return %0#0 : tensor<3xf32>
}
func.func private @double(%x: tensor<3xf32>) -> tensor<3xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<3xf32>
  %one = stablehlo.constant dense<1.0> : tensor<3xf32>
  %0 = stablehlo.multiply %two, %x : tensor<3xf32>
  %1 = stablehlo.multiply %0, %one : tensor<3xf32>
  return %1 : tensor<3xf32>
}
