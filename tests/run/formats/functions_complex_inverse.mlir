// Inverse functions of complex numbers, by name.
// RUN: tokamak run %d/functions_complex_inverse.hlo --backend interp --seed 1 --outputs %t/functions_complex_inverse.npz
// RUN: run --backend interp --seed 1 --strict --expect %t/functions_complex_inverse.npz --rtol 0 --atol 0 --ulp 4
func.func public @main(%arg0: tensor<3xcomplex<f32>>) -> (tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>) {
    %0 = chlo.acos %arg0 : tensor<3xcomplex<f32>> -> tensor<3xcomplex<f32>>
    %1 = chlo.acosh %arg0 : tensor<3xcomplex<f32>> -> tensor<3xcomplex<f32>>
    %2 = chlo.asin %arg0 : tensor<3xcomplex<f32>> -> tensor<3xcomplex<f32>>
    %3 = chlo.asinh %arg0 : tensor<3xcomplex<f32>> -> tensor<3xcomplex<f32>>
    %4 = chlo.atan %arg0 : tensor<3xcomplex<f32>> -> tensor<3xcomplex<f32>>
    %5 = chlo.atanh %arg0 : tensor<3xcomplex<f32>> -> tensor<3xcomplex<f32>>
    return %0, %1, %2, %3, %4, %5 : tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>
  }
