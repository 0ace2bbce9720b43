// Special functions, by name.
// RUN: tokamak run %d/functions_special.hlo --backend interp --seed 1 --outputs %t/functions_special.npz
// RUN: run --backend interp --seed 1 --strict --expect %t/functions_special.npz --rtol 0 --atol 0 --ulp 8
func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
    %0 = chlo.erfc %arg0 : tensor<3xf32> -> tensor<3xf32>
    %1 = chlo.erf_inv %arg0 : tensor<3xf32> -> tensor<3xf32>
    %2 = chlo.bessel_i1e %arg0 : tensor<3xf32> -> tensor<3xf32>
    %3 = chlo.polygamma %arg0, %arg1 : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
    %4 = chlo.zeta %arg0, %arg1 : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
    return %0, %1, %2, %3, %4 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  }
