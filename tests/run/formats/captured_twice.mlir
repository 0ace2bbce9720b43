// A loop whose condition and body both use a value from outside: carried once.
// RUN: tokamak run %d/captured_twice.hlo --backend interp --seed 1 --outputs %t/captured_twice.npz
// RUN: run --backend interp --seed 1 --strict --expect %t/captured_twice.npz --rtol 0 --atol 0
func.func public @main(%x: tensor<9xf32>) -> (tensor<i32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %sum = stablehlo.constant dense<0.0> : tensor<f32>
  %0:4 = stablehlo.while(%a = %x, %b = %x, %i = %zero, %s = %sum) : tensor<9xf32>, tensor<9xf32>, tensor<i32>, tensor<f32>
   cond {
    %limit = stablehlo.constant dense<0.5> : tensor<f32>
    %1 = stablehlo.dynamic_slice %a, %i, sizes = [1] : (tensor<9xf32>, tensor<i32>) -> tensor<1xf32>
    %2 = stablehlo.reshape %1 : (tensor<1xf32>) -> tensor<f32>
    %3 = stablehlo.compare LT, %2, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.dynamic_slice %b, %i, sizes = [1] : (tensor<9xf32>, tensor<i32>) -> tensor<1xf32>
    %2 = stablehlo.reshape %1 : (tensor<1xf32>) -> tensor<f32>
    %3 = stablehlo.add %s, %2 : tensor<f32>
    %4 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %a, %b, %4, %3 : tensor<9xf32>, tensor<9xf32>, tensor<i32>, tensor<f32>
  }
  return %0#2, %0#3 : tensor<i32>, tensor<f32>
}
