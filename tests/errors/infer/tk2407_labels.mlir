// Dimension 0 of the input is batch and feature.
// RUN: check
// ERROR: TK2407 at 5:8
func.func @main(%x: tensor<1x8x2xf32>, %k: tensor<3x2x4xf32>) -> tensor<1x6x4xf32> {
  %0 = "stablehlo.convolution"(%x, %k) {batch_group_count = 1 : i64, feature_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 0, input_spatial_dimensions = [1], kernel_output_feature_dimension = 2, kernel_input_feature_dimension = 1, kernel_spatial_dimensions = [0], output_batch_dimension = 0, output_feature_dimension = 2, output_spatial_dimensions = [1]>} : (tensor<1x8x2xf32>, tensor<3x2x4xf32>) -> tensor<1x6x4xf32>
  return %0 : tensor<1x6x4xf32>
}
