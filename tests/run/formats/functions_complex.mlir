// Functions of complex numbers, by name.
// RUN: tokamak run %d/functions_complex.hlo --backend interp --seed 1 --outputs %t/functions_complex.npz
// RUN: run --backend interp --seed 1 --strict --expect %t/functions_complex.npz --rtol 1e-6 --atol 1e-6
func.func public @main(%arg0: tensor<3xcomplex<f32>>) -> (tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>) {
    %0 = stablehlo.exponential %arg0 : tensor<3xcomplex<f32>>
    %1 = stablehlo.log %arg0 : tensor<3xcomplex<f32>>
    %2 = stablehlo.log_plus_one %arg0 : tensor<3xcomplex<f32>>
    %3 = stablehlo.sqrt %arg0 : tensor<3xcomplex<f32>>
    %4 = chlo.square %arg0 : tensor<3xcomplex<f32>> -> tensor<3xcomplex<f32>>
    %5 = chlo.cosh %arg0 : tensor<3xcomplex<f32>> -> tensor<3xcomplex<f32>>
    return %0, %1, %2, %3, %4, %5 : tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>
  }
