#include "ir/infer/contraction.h"
#include "ir/infer/families.h"
#include "ir/infer/require.h"
#include "ir/infer/window.h"

namespace tokamak {
namespace {

Status CheckLabels(const InferInput& in, const char* array, int64_t first, int64_t second,
                   const Dims& spatial) {
  Dims all{first, second};
  all.insert(all.end(), spatial.begin(), spatial.end());
  int64_t rank = in.operands[0].rank();
  uint64_t seen = 0;
  bool good = static_cast<int64_t>(all.size()) == rank;
  for (size_t i = 0; good && i < all.size(); ++i) {
    good = all[i] >= 0 && all[i] < rank && (seen >> all[i] & 1) == 0;
    if (good) seen |= uint64_t{1} << all[i];
  }
  if (good) return Ok();
  return MakeInferError(in, ErrorCode::kConvolutionLabels,
                        "the labels {} of the {} are not a permutation of {} dimensions",
                        ListText(all), array, rank);
}

Status CheckRanks(const InferInput& in, const ConvolutionAttrs& attrs) {
  const Shape &x = in.operands[0], &kernel = in.operands[1];
  bool good = x.rank() >= 2 && x.rank() <= kMaxRank && kernel.rank() == x.rank() &&
              static_cast<int64_t>(attrs.window.size()) == x.rank() - 2;
  if (!good)
    return MakeInferError(in, ErrorCode::kConvolutionRank,
                          "input is {}, kernel is {}, window has {} dimensions", ToString(x),
                          ToString(kernel), attrs.window.size());
  const ConvDims& dims = attrs.dims;
  TOK_RETURN_IF_ERROR(
      CheckLabels(in, "input", dims.input_batch, dims.input_feature, dims.input_spatial));
  TOK_RETURN_IF_ERROR(
      CheckLabels(in, "kernel", dims.kernel_input, dims.kernel_output, dims.kernel_spatial));
  return CheckLabels(in, "output", dims.output_batch, dims.output_feature, dims.output_spatial);
}

// Requires that `size` is a multiple of `count`, or unknown.
Status RequireDivides(const InferInput& in, const char* what, int64_t size, const char* word,
                      int64_t count) {
  if (size == kDynamic || size % count == 0) return Ok();
  return MakeInferError(in, ErrorCode::kGroupCounts, "{} is {}, no multiple of {} {}", what, size,
                        word, count);
}

Status CheckGroups(const InferInput& in, const ConvolutionAttrs& attrs) {
  const Shape &x = in.operands[0], &kernel = in.operands[1];
  int64_t features = attrs.feature_group_count, batches = attrs.batch_group_count;
  if (features < 1 || batches < 1 || (features > 1 && batches > 1))
    return MakeInferError(
        in, ErrorCode::kGroupCounts,
        "feature_group_count is {}, batch_group_count is {}: both positive and one of them 1 "
        "needed",
        features, batches);
  int64_t batch = x.dim(static_cast<size_t>(attrs.dims.input_batch));
  int64_t feature = x.dim(static_cast<size_t>(attrs.dims.input_feature));
  int64_t kernel_in = kernel.dim(static_cast<size_t>(attrs.dims.kernel_input));
  int64_t kernel_out = kernel.dim(static_cast<size_t>(attrs.dims.kernel_output));
  TOK_RETURN_IF_ERROR(RequireDivides(in, "the input's batch", batch, "batch_group_count", batches));
  TOK_RETURN_IF_ERROR(
      RequireDivides(in, "the input's features", feature, "feature_group_count", features));
  TOK_RETURN_IF_ERROR(
      RequireDivides(in, "the kernel's outputs", kernel_out, "feature_group_count", features));
  TOK_RETURN_IF_ERROR(
      RequireDivides(in, "the kernel's outputs", kernel_out, "batch_group_count", batches));
  if (feature != kDynamic && kernel_in != kDynamic && feature / features != kernel_in)
    return MakeInferError(in, ErrorCode::kFeatureSizes,
                          "input features are {} in {} groups, the kernel takes {}", feature,
                          features, kernel_in);
  return Ok();
}

Status CheckWindow(const InferInput& in, const ConvolutionAttrs& attrs) {
  TOK_RETURN_IF_ERROR(RequireWindow(in, attrs.window));
  const Shape& kernel = in.operands[1];
  for (size_t i = 0; i < attrs.window.size(); ++i) {
    int64_t size = kernel.dim(static_cast<size_t>(attrs.dims.kernel_spatial[i]));
    if (!SizesAgree(size, attrs.window[i].size))
      return MakeInferError(in, ErrorCode::kWindowRange,
                            "window dimension {} has size {}, the kernel's dimension {} is {}", i,
                            attrs.window[i].size, attrs.dims.kernel_spatial[i], size);
  }
  return Ok();
}

// `padding_known`: the window's padding applies; otherwise the spatial sizes are unknown.
Result<Shape> InferConvolved(const InferInput& in, bool padding_known) {
  const auto& attrs = in.attrs.As<ConvolutionAttrs>();
  TOK_RETURN_IF_ERROR(CheckRanks(in, attrs));
  TOK_RETURN_IF_ERROR(CheckGroups(in, attrs));
  TOK_RETURN_IF_ERROR(CheckWindow(in, attrs));
  TOK_RETURN_IF_ERROR(RequirePrecision(in, attrs.precision));
  const Shape &x = in.operands[0], &kernel = in.operands[1];
  Sizes dims(x.dims());
  int64_t batch = x.dim(static_cast<size_t>(attrs.dims.input_batch));
  dims[static_cast<size_t>(attrs.dims.output_batch)] =
      batch == kDynamic ? batch : batch / attrs.batch_group_count;
  dims[static_cast<size_t>(attrs.dims.output_feature)] =
      kernel.dim(static_cast<size_t>(attrs.dims.kernel_output));
  for (size_t i = 0; i < attrs.window.size(); ++i) {
    int64_t size =
        padding_known ? x.dim(static_cast<size_t>(attrs.dims.input_spatial[i])) : kDynamic;
    TOK_TRY(int64_t count, WindowCount(in, size, attrs.window[i]));
    dims[static_cast<size_t>(attrs.dims.output_spatial[i])] = count;
  }
  return InferProducts(in, dims);
}

}  // namespace

Result<Shape> InferConvolution(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  return InferConvolved(in, /*padding_known=*/true);
}

Result<Shape> InferDynamicConv(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  const Shape& padding = in.operands[2];
  int64_t spatial = in.operands[0].rank() - 2;
  if (!IsInteger(padding.type()) || padding.rank() != 2 || !SizesAgree(padding.dim(0), spatial) ||
      !SizesAgree(padding.dim(1), 2))
    return MakeInferError(in, ErrorCode::kShapeOperand,
                          "the padding must be {} pairs of integers, is {}", spatial,
                          ToString(padding));
  return InferConvolved(in, /*padding_known=*/false);
}

}  // namespace tokamak
