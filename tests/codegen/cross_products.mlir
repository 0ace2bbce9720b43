// Cross products of three-element vectors, as in the simulation of a robot arm: vectors of lanes with a stride of
// three elements, interleaved (LLVM 19 crashed on them when compiling for aarch64: tests/cross_codegen_test.py).
// RUN: run --backend interp --seed 4 --outputs %t/cross_products.npz
// RUN: run --backend cpu --seed 4 --expect %t/cross_products.npz
module @cross_products {
  func.func public @main(%a: tensor<9x3xf32>, %b: tensor<9x3xf32>, %c: tensor<9x3xf32>, %w: tensor<9x3xf32>) -> tensor<9xf32> {
    %0 = call @cross(%a, %b) : (tensor<9x3xf32>, tensor<9x3xf32>) -> tensor<9x3xf32>
    %1 = stablehlo.multiply %0, %c : tensor<9x3xf32>
    %2 = call @cross(%c, %0) : (tensor<9x3xf32>, tensor<9x3xf32>) -> tensor<9x3xf32>
    %3 = stablehlo.multiply %2, %w : tensor<9x3xf32>
    %4 = stablehlo.add %1, %3 : tensor<9x3xf32>
    %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<9x3xf32>, tensor<f32>) -> tensor<9xf32>
    return %5 : tensor<9xf32>
  }
  func.func private @cross(%a: tensor<9x3xf32>, %b: tensor<9x3xf32>) -> tensor<9x3xf32> {
    %0 = stablehlo.slice %a [0:9, 0:1] : (tensor<9x3xf32>) -> tensor<9x1xf32>
    %1 = stablehlo.reshape %0 : (tensor<9x1xf32>) -> tensor<9xf32>
    %2 = stablehlo.slice %a [0:9, 1:2] : (tensor<9x3xf32>) -> tensor<9x1xf32>
    %3 = stablehlo.reshape %2 : (tensor<9x1xf32>) -> tensor<9xf32>
    %4 = stablehlo.slice %a [0:9, 2:3] : (tensor<9x3xf32>) -> tensor<9x1xf32>
    %5 = stablehlo.reshape %4 : (tensor<9x1xf32>) -> tensor<9xf32>
    %6 = stablehlo.slice %b [0:9, 0:1] : (tensor<9x3xf32>) -> tensor<9x1xf32>
    %7 = stablehlo.reshape %6 : (tensor<9x1xf32>) -> tensor<9xf32>
    %8 = stablehlo.slice %b [0:9, 1:2] : (tensor<9x3xf32>) -> tensor<9x1xf32>
    %9 = stablehlo.reshape %8 : (tensor<9x1xf32>) -> tensor<9xf32>
    %10 = stablehlo.slice %b [0:9, 2:3] : (tensor<9x3xf32>) -> tensor<9x1xf32>
    %11 = stablehlo.reshape %10 : (tensor<9x1xf32>) -> tensor<9xf32>
    %12 = stablehlo.multiply %3, %11 : tensor<9xf32>
    %13 = stablehlo.multiply %5, %9 : tensor<9xf32>
    %14 = stablehlo.subtract %12, %13 : tensor<9xf32>
    %15 = stablehlo.multiply %5, %7 : tensor<9xf32>
    %16 = stablehlo.multiply %1, %11 : tensor<9xf32>
    %17 = stablehlo.subtract %15, %16 : tensor<9xf32>
    %18 = stablehlo.multiply %1, %9 : tensor<9xf32>
    %19 = stablehlo.multiply %3, %7 : tensor<9xf32>
    %20 = stablehlo.subtract %18, %19 : tensor<9xf32>
    %21 = stablehlo.broadcast_in_dim %14, dims = [1] : (tensor<9xf32>) -> tensor<1x9xf32>
    %22 = stablehlo.broadcast_in_dim %17, dims = [1] : (tensor<9xf32>) -> tensor<1x9xf32>
    %23 = stablehlo.broadcast_in_dim %20, dims = [1] : (tensor<9xf32>) -> tensor<1x9xf32>
    %24 = stablehlo.concatenate %21, %22, %23, dim = 0 : (tensor<1x9xf32>, tensor<1x9xf32>, tensor<1x9xf32>) -> tensor<3x9xf32>
    %25 = stablehlo.transpose %24, dims = [1, 0] : (tensor<3x9xf32>) -> tensor<9x3xf32>
    return %25 : tensor<9x3xf32>
  }
}
