// Inverse, hyperbolic and neighbour functions of real numbers, by name.
// RUN: tokamak run %d/functions_elementary.hlo --backend interp --seed 1 --outputs %t/functions_elementary.npz
// RUN: run --backend interp --seed 1 --strict --expect %t/functions_elementary.npz --rtol 0 --atol 0 --ulp 4
func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
    %0 = chlo.acos %arg0 : tensor<3xf32> -> tensor<3xf32>
    %1 = chlo.acosh %arg0 : tensor<3xf32> -> tensor<3xf32>
    %2 = chlo.asin %arg0 : tensor<3xf32> -> tensor<3xf32>
    %3 = chlo.asinh %arg0 : tensor<3xf32> -> tensor<3xf32>
    %4 = chlo.atan %arg0 : tensor<3xf32> -> tensor<3xf32>
    %5 = chlo.atanh %arg0 : tensor<3xf32> -> tensor<3xf32>
    %6 = chlo.cosh %arg0 : tensor<3xf32> -> tensor<3xf32>
    %7 = chlo.sinh %arg0 : tensor<3xf32> -> tensor<3xf32>
    %8 = chlo.next_after %arg0, %arg1 : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  }
