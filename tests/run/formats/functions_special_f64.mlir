// Special functions in double precision, by name.
// RUN: tokamak run %d/functions_special_f64.hlo --backend interp --seed 1 --outputs %t/functions_special_f64.npz
// RUN: run --backend interp --seed 1 --strict --expect %t/functions_special_f64.npz --rtol 0 --atol 0 --ulp 32
func.func public @main(%arg0: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) {
    %0 = chlo.erfc %arg0 : tensor<3xf64> -> tensor<3xf64>
    %1 = chlo.erf_inv %arg0 : tensor<3xf64> -> tensor<3xf64>
    %2 = chlo.bessel_i1e %arg0 : tensor<3xf64> -> tensor<3xf64>
    %3 = chlo.lgamma %arg0 : tensor<3xf64> -> tensor<3xf64>
    %4 = chlo.digamma %arg0 : tensor<3xf64> -> tensor<3xf64>
    return %0, %1, %2, %3, %4 : tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>
  }
