#include "ir/verify_shape.h"

#include <bitset>
#include <cmath>

#include <fmt/core.h>

#include "ir/int_range.h"

namespace tokamak {
namespace {

bool IsPermutation(const Dims& list, size_t rank) {
  std::bitset<kMaxRank> seen;
  if (list.size() != rank) return false;
  for (int64_t d : list) {
    if (d < 0 || d >= static_cast<int64_t>(rank) || seen.test(static_cast<size_t>(d))) return false;
    seen.set(static_cast<size_t>(d));
  }
  return true;
}

Status VerifyQuant(const Shape& shape, std::string_view what) {
  const QuantType& quant = *shape.quant();
  auto error = [&](std::string text) {
    return MakeError(ErrorCode::kQuantParameters,
                     fmt::format("{}: quantized {}: {}", what, ToString(shape), text));
  };
  if (!IsInteger(shape.type())) return error("the stored type must be an integer");
  if (!IsReal(quant.expressed)) return error("the expressed type must be real");
  IntRange range = RangeOfType(shape.type()).value_or(IntRange{0, INT64_MAX});
  if (quant.storage_min > quant.storage_max || quant.storage_min < range.low ||
      quant.storage_max > range.high)
    return error(fmt::format("storage from {} to {}", quant.storage_min, quant.storage_max));
  if (quant.scales.empty() || quant.scales.size() != quant.zero_points.size())
    return error(
        fmt::format("{} scales and {} zero points", quant.scales.size(), quant.zero_points.size()));
  for (double scale : quant.scales)
    if (!(scale > 0) || !std::isfinite(scale)) return error(fmt::format("scale {}", scale));
  if (quant.axis < 0)
    return quant.scales.size() == 1 ? Ok() : Status(error("several scales without a dimension"));
  if (quant.axis >= shape.rank()) return error(fmt::format("no dimension {}", quant.axis));
  int64_t size = shape.dim(static_cast<size_t>(quant.axis));
  if (size != kDynamic && size != static_cast<int64_t>(quant.scales.size()))
    return error(fmt::format("dimension {} is {}, but there are {} scales", quant.axis, size,
                             quant.scales.size()));
  return Ok();
}

Status VerifyBounds(const Shape& shape, std::string_view what) {
  const Dims& bounds = shape.bounds();
  bool good = bounds.size() == shape.dims().size();
  for (size_t i = 0; good && i < bounds.size(); ++i)
    good = bounds[i] == kDynamic || (bounds[i] >= 0 && shape.dim(i) == kDynamic);
  if (good && CheckedElementCount(bounds)) return Ok();
  return MakeError(ErrorCode::kBadDimensions,
                   fmt::format("{}: {} has impossible bounds", what, ToString(shape)));
}

Status VerifyAt(const Shape& shape, std::string_view what) {
  for (const Shape& element : shape.elements()) TOK_RETURN_IF_ERROR(VerifyAt(element, what));
  if (!shape.IsArray()) return Ok();
  if (shape.rank() > kMaxRank)
    return MakeError(ErrorCode::kBadDimensions, fmt::format("{}: {} dimensions, the limit is {}",
                                                            what, shape.rank(), kMaxRank));
  if (!CheckedElementCount(shape.dims()))
    return MakeError(
        ErrorCode::kBadDimensions,
        fmt::format("{}: {} has a negative dimension or too many elements", what, ToString(shape)));
  if (!shape.bounds().empty()) TOK_RETURN_IF_ERROR(VerifyBounds(shape, what));
  const Layout* layout = shape.layout();
  if (layout != nullptr && !layout->minor_to_major.empty() &&
      !IsPermutation(layout->minor_to_major, shape.dims().size()))
    return MakeError(ErrorCode::kBadLayout,
                     fmt::format("{}: the layout of {} does not order its {} dimensions", what,
                                 ToString(shape), shape.rank()));
  if (shape.quant() != nullptr) return VerifyQuant(shape, what);
  return Ok();
}

// The element of `shape` at the end of a path through tuples; null if it does not exist.
const Shape* PartAt(const Shape& shape, const Dims& path) {
  const Shape* part = &shape;
  for (int64_t index : path) {
    if (!part->IsTuple() || index < 0 || index >= static_cast<int64_t>(part->elements().size()))
      return nullptr;
    part = &part->elements()[static_cast<size_t>(index)];
  }
  return part;
}

std::string PathText(const Dims& path) {
  std::string text = "{";
  for (size_t i = 0; i < path.size(); ++i) text += (i > 0 ? "," : "") + std::to_string(path[i]);
  return text + "}";
}

Error HeaderError(const Module& module, ErrorCode code, std::string text) {
  TextSpan where;
  where.file = module.file;
  if (module.entry() != nullptr) {
    where.line = static_cast<int>(module.entry()->pos.line);
    where.column = static_cast<int>(module.entry()->pos.column);
  }
  return MakeError(code, "module: " + std::move(text), where);
}

const Shape* ParameterPart(const Module& module, int64_t parameter, const Dims& path) {
  const Computation* entry = module.entry();
  if (entry == nullptr || parameter < 0 ||
      parameter >= static_cast<int64_t>(entry->parameters().size()))
    return nullptr;
  return PartAt(entry->parameter(static_cast<size_t>(parameter))->shape(), path);
}

Status VerifyAliases(const Module& module) {
  for (const InputOutputAlias& alias : module.aliases) {
    const Shape* output =
        module.entry() == nullptr ? nullptr : PartAt(module.entry()->root()->shape(), alias.output);
    if (output == nullptr)
      return HeaderError(
          module, ErrorCode::kAliasRange,
          fmt::format("an alias names output {}, which does not exist", PathText(alias.output)));
    if (ParameterPart(module, alias.parameter, alias.parameter_index) == nullptr)
      return HeaderError(module, ErrorCode::kAliasRange,
                         fmt::format("an alias names parameter {} at {}, which does not exist",
                                     alias.parameter, PathText(alias.parameter_index)));
  }
  for (const BufferDonor& donor : module.donors) {
    if (ParameterPart(module, donor.parameter, donor.parameter_index) == nullptr)
      return HeaderError(module, ErrorCode::kAliasRange,
                         fmt::format("a donor names parameter {} at {}, which does not exist",
                                     donor.parameter, PathText(donor.parameter_index)));
  }
  return Ok();
}

Status VerifyEntryLayout(const Module& module) {
  const Computation* entry = module.entry();
  const std::vector<Shape>& layouts = module.entry_parameter_layouts;
  if (entry == nullptr) return Ok();
  if (!layouts.empty() && layouts.size() != entry->parameters().size())
    return HeaderError(module, ErrorCode::kArgumentCount,
                       fmt::format("entry_computation_layout has {} parameters, the entry has {}",
                                   layouts.size(), entry->parameters().size()));
  for (size_t i = 0; i < layouts.size(); ++i) {
    if (!CompatibleWithDynamic(layouts[i], entry->parameter(i)->shape()))
      return HeaderError(
          module, ErrorCode::kArgumentShape,
          fmt::format("entry_computation_layout has {1} for parameter {0}, which is {2}", i,
                      ToString(layouts[i]), ToString(entry->parameter(i)->shape())));
  }
  const Shape& root = entry->root()->shape();
  if (module.entry_result_layout && !CompatibleWithDynamic(*module.entry_result_layout, root))
    return HeaderError(module, ErrorCode::kCallResult,
                       fmt::format("entry_computation_layout has {} for the result, which is {}",
                                   ToString(*module.entry_result_layout), ToString(root)));
  return Ok();
}

}  // namespace

Status VerifyShape(const Shape& shape, std::string_view what) {
  if (shape.depth() > kMaxNesting)
    return MakeError(ErrorCode::kShapeTooDeep,
                     fmt::format("{}: a shape is nested deeper than {}", what, kMaxNesting));
  if (shape.parts() > kMaxShapeParts)
    return MakeError(ErrorCode::kBadDimensions,
                     fmt::format("{}: a shape has more than {} parts", what, kMaxShapeParts));
  return VerifyAt(shape, what);
}

Status VerifyModuleHeader(const Module& module) {
  TOK_RETURN_IF_ERROR(VerifyAliases(module));
  return VerifyEntryLayout(module);
}

}  // namespace tokamak
