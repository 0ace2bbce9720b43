// The same of narrow numbers: some are evaluated in f32, by name.
// RUN: tokamak run %d/functions_narrow.hlo --backend interp --seed 1 --outputs %t/functions_narrow.npz
// RUN: run --backend interp --seed 1 --strict --expect %t/functions_narrow.npz --rtol 0 --atol 0 --ulp 4
func.func public @main(%arg0: tensor<3xbf16>, %arg1: tensor<3xbf16>) -> (tensor<3xbf16>, tensor<3xbf16>, tensor<3xbf16>, tensor<3xbf16>, tensor<3xbf16>, tensor<3xbf16>, tensor<3xbf16>, tensor<3xbf16>, tensor<3xbf16>) {
    %0 = chlo.acos %arg0 : tensor<3xbf16> -> tensor<3xbf16>
    %1 = chlo.acosh %arg0 : tensor<3xbf16> -> tensor<3xbf16>
    %2 = chlo.asin %arg0 : tensor<3xbf16> -> tensor<3xbf16>
    %3 = chlo.asinh %arg0 : tensor<3xbf16> -> tensor<3xbf16>
    %4 = chlo.atan %arg0 : tensor<3xbf16> -> tensor<3xbf16>
    %5 = chlo.atanh %arg0 : tensor<3xbf16> -> tensor<3xbf16>
    %6 = chlo.cosh %arg0 : tensor<3xbf16> -> tensor<3xbf16>
    %7 = chlo.sinh %arg0 : tensor<3xbf16> -> tensor<3xbf16>
    %8 = chlo.next_after %arg0, %arg1 : tensor<3xbf16>, tensor<3xbf16> -> tensor<3xbf16>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8 : tensor<3xbf16>, tensor<3xbf16>, tensor<3xbf16>, tensor<3xbf16>, tensor<3xbf16>, tensor<3xbf16>, tensor<3xbf16>, tensor<3xbf16>, tensor<3xbf16>
  }
