// Special functions, by name.
// RUN: check
// NORMAL-AS: functions_special.hlo
// NOT-NORMAL-AS: functions_elementary.hlo
func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
    %0 = chlo.erfc %arg0 : tensor<3xf32> -> tensor<3xf32>
    %1 = chlo.erf_inv %arg0 : tensor<3xf32> -> tensor<3xf32>
    %2 = chlo.bessel_i1e %arg0 : tensor<3xf32> -> tensor<3xf32>
    %3 = chlo.polygamma %arg0, %arg1 : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
    %4 = chlo.zeta %arg0, %arg1 : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
    return %0, %1, %2, %3, %4 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  }
