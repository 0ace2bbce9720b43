// Properties of a program that do not depend on how it is compiled: the arrays that cross its
// boundary, an operation count for the frontend, and source locations for messages.
//
// Boundary arrays are those of the entry. With several devices, an array is the shard of one
// device, and whole_dims is the array that the user sees. Donation: a parameter that the program
// may overwrite is matched with a result of equal bytes (explicit alias) or of equal type,
// dimensions and memory kind (donor), each result at most once. Matching is O(p * r).
//
// CostOf counts 2 flops per multiply-add; elementwise ops of more than one flop count as
// transcendentals. It is what JAX's cost_analysis reports, not the cost model that plans fusion
// (src/cost).

#include "driver/compile/program_facts.h"

#include <algorithm>
#include <string>

#include "analysis/index_map.h"
#include "driver/compile/host_calls.h"

namespace tokamak {
namespace {

// The buffer array of a shape; dynamic dimensions take their bounds.
Result<ArrayInfo> ArrayOf(const Shape& shape, const std::string& what, const TextSpan& where) {
  ArrayInfo info;
  if (shape.IsToken()) {
    info.is_token = true;
    return info;
  }
  if (!shape.IsArray())
    return MakeError(ErrorCode::kUnsupportedResult,
                     what + " is " + ToString(shape) + ", but buffers can hold only arrays", where);
  info.type = shape.type();
  info.dims = shape.dims();
  for (size_t i = 0; i < info.dims.size(); ++i) {
    if (info.dims[i] != kDynamic) continue;
    if (i >= shape.bounds().size() || shape.bounds()[i] == kDynamic)
      return MakeError(ErrorCode::kUnsupportedResult,
                       what + " is " + ToString(shape) + ", whose size is unbounded", where);
    info.dims[i] = shape.bounds()[i];
  }
  std::optional<int64_t> count = CheckedElementCount(info.dims);
  if (!count || *count > kMaxElements / 16)
    return MakeError(ErrorCode::kUnsupportedResult, what + " is too large: " + ToString(shape),
                     where);
  info.whole_dims = info.dims;
  info.bytes = *count * BytesOf(info.type);
  return info;
}

// Replaces `info` by one device's shard of the array.
Status ApplySharding(ArrayInfo& info, const Sharding* sharding, const Module& module,
                     int64_t devices) {
  if (devices == 1 || sharding == nullptr || info.is_token) return Ok();
  TOK_TRY(info.shard_map, ShardMapOf(*sharding, module, info.whole_dims, devices));
  info.dims = info.shard_map.ShardDims(info.whole_dims);
  info.bytes = BytesOf(info.type);
  for (int64_t dim : info.dims) info.bytes *= dim;
  return Ok();
}

Error At(Error error, const Instr& instr) {
  error.where = SpanOf(instr);
  return error;
}

std::string MemoryKindOf(const AttrDict& attributes) {
  const AttrValue* kind = Find(attributes, "mhlo.memory_kind");
  const std::string* text = kind == nullptr ? nullptr : kind->As<std::string>();
  return text == nullptr ? "device" : *text;
}

bool CostsNothing(Op op) {
  switch (op) {
    case Op::kParameter:
    case Op::kConstant:
    case Op::kTuple:
    case Op::kGetTupleElement:
    case Op::kBitcast:
      return true;
    default:
      return false;
  }
}

double BytesOfShape(const Shape& shape) {
  if (shape.IsArray() && !shape.HasDynamicDims()) return static_cast<double>(shape.ByteSize());
  double bytes = 0;
  if (shape.IsTuple())
    for (const Shape& element : shape.elements()) bytes += BytesOfShape(element);
  return bytes;
}

double CountElements(const Shape& shape) {
  if (shape.IsArray() && !shape.HasDynamicDims()) return static_cast<double>(shape.ElementCount());
  double count = 0;
  if (shape.IsTuple())
    for (const Shape& element : shape.elements()) count += CountElements(element);
  return count;
}

// Multiplications and additions of a contraction: two per multiplied pair of elements.
double ContractionFlops(const Instr& instr) {
  return 2 * static_cast<double>(ReadsPerElement(instr)) * CountElements(instr.shape());
}

void AddCost(const Instr& instr, CostAnalysis& cost) {
  if (CostsNothing(instr.op())) return;
  double elements = CountElements(instr.shape());
  if (instr.op() == Op::kDot) {
    cost.flops += ContractionFlops(instr);
  } else if (instr.op() == Op::kReduce) {
    cost.flops += CountElements(instr.operand(0)->shape());
  } else if (instr.info().flops_per_element > 1 && instr.info().Is(kElementwise)) {
    cost.transcendentals += elements;
  } else {
    cost.flops += elements * instr.info().flops_per_element;
  }
  cost.bytes_accessed += BytesOfShape(instr.shape());
  for (const Instr* operand : instr.operands())
    cost.bytes_accessed += BytesOfShape(operand->shape());
}

const Instr* InstrAt(const Module& module, const TextSpan& where) {
  for (const auto& computation : module.computations()) {
    for (const Instr* instr : computation->Instrs()) {
      TextPos pos = instr->pos();
      bool here = where.line > 0 ? static_cast<int>(pos.line) == where.line &&
                                       static_cast<int>(pos.column) == where.column
                                 : pos.line == 0 && pos.column != 0 && pos.column == where.offset;
      if (here) return instr;
    }
  }
  return nullptr;
}

}  // namespace

Result<std::vector<ParameterInfo>> ParametersOf(const Module& module, int64_t devices) {
  std::vector<ParameterInfo> parameters;
  for (const Instr* instr : module.entry()->parameters()) {
    std::string what = "parameter " + std::to_string(parameters.size());
    TOK_TRY(ArrayInfo info, ArrayOf(instr->shape(), what, SpanOf(*instr)));
    const std::optional<Sharding>& sharding = instr->extras().sharding;
    Status shard_map = ApplySharding(info, sharding ? &*sharding : nullptr, module, devices);
    if (!shard_map.ok()) return At(std::move(shard_map.error()), *instr);
    ParameterInfo parameter;
    static_cast<ArrayInfo&>(parameter) = std::move(info);
    parameter.memory_kind = MemoryKindOf(instr->extras().discardable);
    parameters.push_back(std::move(parameter));
  }
  for (const InputOutputAlias& alias : module.aliases) {
    ParameterInfo& parameter = parameters[static_cast<size_t>(alias.parameter)];
    parameter.donated = true;
    parameter.alias_result = alias.output.empty() ? 0 : alias.output[0];
  }
  for (const BufferDonor& donor : module.donors)
    parameters[static_cast<size_t>(donor.parameter)].donated = true;
  return parameters;
}

Result<std::vector<ArrayInfo>> ResultsOf(const Module& module, int64_t devices) {
  const Computation& entry = *module.entry();
  const Shape& shape = entry.root()->shape();
  std::vector<Shape> shapes;
  if (shape.IsTuple()) {
    shapes = shape.elements();
  } else {
    shapes.push_back(shape);
  }
  std::vector<ArrayInfo> results;
  for (const Shape& result : shapes) {
    std::string what = "result " + std::to_string(results.size());
    TOK_TRY(ArrayInfo info, ArrayOf(result, what, SpanOf(*entry.root())));
    if (results.size() < entry.results.size())
      info.memory_kind = MemoryKindOf(entry.results[results.size()].attributes);
    Status shard_map =
        ApplySharding(info, ShardingOfResult(module, results.size()), module, devices);
    if (!shard_map.ok()) return At(std::move(shard_map.error()), *entry.root());
    results.push_back(std::move(info));
  }
  return results;
}

void MatchDonors(std::vector<ParameterInfo>& parameters, const std::vector<ArrayInfo>& results) {
  std::vector<bool> taken(results.size(), false);
  for (ParameterInfo& parameter : parameters) {
    if (parameter.alias_result < 0) continue;
    auto r = static_cast<size_t>(parameter.alias_result);
    // An alias between arrays of different sizes is ignored.
    if (r >= results.size() || taken[r] || results[r].bytes != parameter.bytes) {
      parameter.alias_result = -1;
    } else {
      taken[r] = true;
    }
  }
  for (ParameterInfo& parameter : parameters) {
    if (!parameter.donated || parameter.alias_result >= 0 || parameter.is_token) continue;
    for (size_t r = 0; r < results.size() && parameter.alias_result < 0; ++r) {
      const ArrayInfo& result = results[r];
      if (taken[r] || result.is_token || result.type != parameter.type ||
          result.dims != parameter.dims || result.memory_kind != parameter.memory_kind)
        continue;
      taken[r] = true;
      parameter.alias_result = static_cast<int64_t>(r);
    }
  }
}

CostAnalysis CostOf(const Module& module) {
  CostAnalysis cost;
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->Instrs()) AddCost(*instr, cost);
  return cost;
}

MemoryAnalysis MemoryOf(const std::vector<ParameterInfo>& parameters,
                        const std::vector<ArrayInfo>& results, int64_t arena_bytes) {
  MemoryAnalysis memory;
  for (const ParameterInfo& parameter : parameters) {
    memory.arguments += parameter.bytes;
    if (parameter.alias_result >= 0) memory.aliased += parameter.bytes;
  }
  for (const ArrayInfo& result : results) memory.results += result.bytes;
  memory.temporary = arena_bytes;
  return memory;
}

bool CallsHost(const Module& module) {
  auto reaches_host = [](const Instr* instr) {
    if (instr->op() != Op::kCustomCall) return false;
    const CustomCallAttrs& attrs = instr->attrs<CustomCallAttrs>();
    return attrs.has_side_effect || IsHostCall(attrs.target);
  };
  for (const auto& computation : module.computations()) {
    std::vector<Instr*> instrs = computation->Instrs();
    if (std::any_of(instrs.begin(), instrs.end(), reaches_host)) return true;
  }
  return false;
}

std::vector<std::string> OriginTexts(const Instr& instr, const Module& module, size_t limit) {
  std::vector<std::string> texts;
  if (instr.origins() == OriginId::kNone) return texts;
  for (const Origin* origin : module.origins().Of(instr.origins())) {
    if (origin->op_name.starts_with("tokamak.")) continue;  // a fusion constraint
    if (origin->op_name.empty() && origin->frame == FrameId::kNone) continue;
    std::string text = origin->op_name.empty() ? "from" : "'" + origin->op_name + "'";
    if (origin->frame != FrameId::kNone) {
      const Frame& frame = module.origins().frame(origin->frame);
      text += " " + frame.file + ":" + std::to_string(frame.line);
      if (!frame.function.empty()) text += " (" + frame.function + ")";
    }
    texts.push_back(std::move(text));
    if (texts.size() >= limit) break;
  }
  return texts;
}

void AddOrigins(Error& error, const Instr& instr, const Module& module) {
  for (std::string& text : OriginTexts(instr, module)) error.notes.push_back(std::move(text));
}

void AddOrigin(Error& error, const Module& module) {
  const Instr* instr = InstrAt(module, error.where);
  if (instr != nullptr) AddOrigins(error, *instr, module);
}

}  // namespace tokamak
