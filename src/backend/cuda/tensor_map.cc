#include "backend/cuda/tensor_map.h"

#include <algorithm>

#include <fmt/format.h>

namespace tokamak::cuda {
namespace {

// Elements along a dimension, and bytes of a stride, that a map has less of (CUDA driver API).
constexpr int64_t kMapElements = int64_t{1} << 32, kMapStrideBytes = int64_t{1} << 40;
// CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion of cuda.h. Copies move bits, so
// the type is the unsigned integer of that size, unless they round to TF32.
constexpr int kMapU8 = 0, kMapU16 = 1, kMapU32 = 2, kMapU64 = 4, kMapTf32 = 11;
constexpr int kMapSwizzle128 = 3, kMapPromote256 = 3;

int MapTypeOf(const TensorMapForm& form) {
  if (form.tf32) return kMapTf32;
  switch (BytesOf(form.type)) {
    case 1:
      return kMapU8;
    case 2:
      return kMapU16;
    case 4:
      return kMapU32;
    default:
      return kMapU64;
  }
}

}  // namespace

Result<TensorMapForm> TensorMapFormOf(const Kernel& kernel, const TileCopy& copy) {
  TensorMapForm form;
  bool is_back = kernel.array(copy.from).space == Space::kShared;
  form.argument = static_cast<size_t>(is_back ? copy.to : copy.from);
  form.type = kernel.array(copy.from).type;
  form.swizzled = copy.swizzled;
  form.tf32 = copy.tf32;
  int64_t bytes = BytesOf(form.type);
  for (const TileCopy::Dimension& given : copy.dimensions) {
    TensorMapForm::Dimension dimension{given.size, given.stride, given.box, given.step};
    // A dimension of one element needs no stride, but the driver wants one.
    bool is_first = form.dimensions.empty();
    if (!is_first && dimension.size == 1 && dimension.stride == 0)
      dimension.stride = TileCopy::kAlignment / bytes;
    if (!is_first && dimension.stride == 0)
      return MakeError(ErrorCode::kCudaText,
                       fmt::format("kernel {}: a copy along a dimension of stride 0", kernel.name));
    if (dimension.size >= kMapElements || dimension.stride >= kMapStrideBytes / bytes)
      return MakeError(ErrorCode::kCudaText,
                       fmt::format("kernel {}: a copy from a dimension of {} elements, stride {}",
                                   kernel.name, dimension.size, dimension.stride));
    form.dimensions.push_back(dimension);
  }
  return form;
}

TensorMapArguments ArgumentsOf(const TensorMapForm& form) {
  TensorMapArguments arguments;
  arguments.type = MapTypeOf(form);
  arguments.swizzle = form.swizzled ? kMapSwizzle128 : 0;
  arguments.promotion = kMapPromote256;
  arguments.rank = static_cast<uint32_t>(form.dimensions.size());
  for (size_t i = 0; i < form.dimensions.size(); ++i) {
    const TensorMapForm::Dimension& dimension = form.dimensions[i];
    arguments.sizes[i] = static_cast<uint64_t>(dimension.size);
    // The driver's boxes contain the elements that are stepped over.
    arguments.boxes[i] = static_cast<uint32_t>(dimension.box * dimension.step);
    arguments.steps[i] = static_cast<uint32_t>(dimension.step);
    if (i > 0)
      arguments.strides[i - 1] = static_cast<uint64_t>(dimension.stride * BytesOf(form.type));
  }
  return arguments;
}

Status EncodeTensorMap(const DriverApi& api, const TensorMapForm& form, void* address,
                       const std::string& label, TensorMap& map) {
  TensorMapArguments a = ArgumentsOf(form);
  int result =
      api.encode_tensor_map(&map, a.type, a.rank, address, a.sizes.data(), a.strides.data(),
                            a.boxes.data(), a.steps.data(), 0, a.swizzle, a.promotion, 0);
  if (result == 0) return Ok();
  return MakeError(ErrorCode::kKernelLaunch,
                   fmt::format("kernel {}: argument {} at {} cannot be copied in boxes: {}", label,
                               form.argument, fmt::ptr(address), api.TextOf(result)));
}

}  // namespace tokamak::cuda
