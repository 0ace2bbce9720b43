#include "kernel/sim_tiles.h"

#include <fmt/format.h>

namespace tokamak {
namespace {

// The alignment of a tile in bytes (PTX ISA, cp.async.bulk.tensor).
constexpr int64_t kTileAlignment = 128;

}  // namespace

Status CheckTile(const Kernel& kernel, const TileCopy& copy, ArrayId id, int64_t index) {
  const Array& array = kernel.array(id);
  const char* does = id == copy.to ? "copies to" : "copies from";
  if (index < 0 || index + copy.Elements() > array.size)
    return MakeError(ErrorCode::kKernelOutOfBounds,
                     fmt::format("{} {}[{}] to {}[{}], which has {} elements", does, array.name,
                                 index, array.name, index + copy.Elements() - 1, array.size));
  int64_t alignment = copy.swizzled ? MatrixMultiply::kPanelAlignment : kTileAlignment;
  if (index * BytesOf(array.type) % alignment == 0) return Ok();
  return MakeError(ErrorCode::kKernelAsync,
                   fmt::format("{} {}[{}], which is not aligned to {} bytes", does, array.name,
                               index, alignment));
}

Status CheckBoxStart(const Array& tensor, int64_t at) {
  if (at * BytesOf(tensor.type) % TileCopy::kAlignment == 0) return Ok();
  return MakeError(ErrorCode::kKernelAsync,
                   fmt::format("copies a box of {} that starts at {} along its rows, which is not "
                               "a multiple of {} bytes",
                               tensor.name, at, TileCopy::kAlignment));
}

}  // namespace tokamak
