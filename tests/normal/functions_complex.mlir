// Functions of complex numbers, by name.
// RUN: check
// NORMAL-AS: functions_complex.hlo
// NOT-NORMAL-AS: functions_complex_inverse.hlo
func.func public @main(%arg0: tensor<3xcomplex<f32>>) -> (tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>) {
    %0 = stablehlo.exponential %arg0 : tensor<3xcomplex<f32>>
    %1 = stablehlo.log %arg0 : tensor<3xcomplex<f32>>
    %2 = stablehlo.log_plus_one %arg0 : tensor<3xcomplex<f32>>
    %3 = stablehlo.sqrt %arg0 : tensor<3xcomplex<f32>>
    %4 = chlo.square %arg0 : tensor<3xcomplex<f32>> -> tensor<3xcomplex<f32>>
    %5 = chlo.cosh %arg0 : tensor<3xcomplex<f32>> -> tensor<3xcomplex<f32>>
    return %0, %1, %2, %3, %4, %5 : tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>
  }
