// Which instructions have code for single elements.

#include <vector>

#include "gen/element.h"
#include "gen/random_bits.h"
#include "gen/select_scatter.h"
#include "gen/window.h"
#include "support/hash.h"
#include "support/memo.h"

namespace tokamak {
namespace {

// Whether an op has a scalar formula depends on these; its attributes only select the formula.
struct FormulaKey {
  Op op{};
  std::vector<ElementType> types;  // operands, then the result

  uint64_t Hash() const {
    Hasher hasher;
    hasher.Add(op);
    for (ElementType type : types) hasher.Add(type);
    return hasher.digest();
  }
  bool operator==(const FormulaKey&) const = default;
};

bool MakesFormula(const Instr& instr) {
  KernelBuilder b("probe");
  std::vector<Element> operands;
  for (const Instr* operand : instr.operands()) {
    ElementType type = operand->shape().type();
    ArrayId array =
        b.Argument({.name = "x", .type = StorageType(type), .access = Access::kRead, .size = 2});
    Element loaded{b.Load(array, b.Index(0)), {}};
    if (IsComplex(type)) loaded[1] = b.Load(array, b.Index(1));
    operands.push_back(FromStorage(b, type, loaded));
  }
  OpCall call{.op = instr.op(),
              .type = instr.shape().type(),
              .from = instr.operand(instr.op() == Op::kSelect ? 2 : 0)->shape().type(),
              .operands = operands,
              .attrs = &instr.attrs()};
  return ApplyOp(b, call).has_value();
}

// Whether an op has a formula for its types. Builds one to find out, once per key.
bool HasFormula(const Instr& instr) {
  FormulaKey key{instr.op(), {}};
  for (const Instr* operand : instr.operands()) key.types.push_back(operand->shape().type());
  key.types.push_back(instr.shape().type());
  // Entries. Chosen: more than the ops times the types that programs combine.
  constexpr size_t kMaxKnown = 10000;
  static auto* known = new Memo<FormulaKey, bool>(kMaxKnown);
  return known->Get(key, [&] { return MakesFormula(instr); });
}

std::optional<std::string> WhyNoShapes(const Instr& instr) {
  auto plain = [](const Shape& shape) { return IsPlainArray(shape) && shape.ElementCount() > 0; };
  if (!plain(instr.shape())) return "its result is not an array of static shape";
  for (const Instr* operand : instr.operands()) {
    // Empty index vectors are not read.
    bool unused = instr.op() == Op::kGather && operand == instr.operand(1) &&
                  instr.attrs<GatherAttrs>().start_index_map.empty();
    if (!plain(operand->shape()) && !(unused && IsPlainArray(operand->shape())))
      return "an operand is not an array of static shape";
  }
  return std::nullopt;
}

std::optional<std::string> WhyNoBitcast(const Instr& instr) {
  ElementType from = instr.operand(0)->shape().type(), to = instr.shape().type();
  if (from != to && (IsComplex(from) || IsComplex(to)))
    return "bitcast-convert: from or to complex numbers";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> WhyNoElementCode(const Instr& instr) {
  if (instr.op() == Op::kRngBitGenerator) return WhyNoRandomBitsCode(instr);
  if (instr.op() == Op::kReduceWindow) return WhyNoReduceWindowCode(instr);
  if (std::optional<std::string> why = WhyNoShapes(instr)) return why;
  switch (instr.op()) {
    case Op::kIota:
    case Op::kConstant:
      return std::nullopt;
    case Op::kGather:
      for (int64_t size : instr.attrs<GatherAttrs>().slice_sizes)
        if (size == 0) return "gather: its slices are empty";
      return std::nullopt;
    case Op::kBitcastConvert:
      return WhyNoBitcast(instr);
    case Op::kSelectAndScatter:
      return WhyNoSelectAndScatterCode(instr);
    case Op::kMap: {
      if (instr.captures() > 0) return "map: it captures values";
      return std::nullopt;
    }
    default:
      break;
  }
  if (instr.info().Is(kDataMovement)) {
    if (HasIndexMap(instr, 0)) return std::nullopt;
    return std::string(instr.info().name) + ": it has no index map for these shapes and layouts";
  }
  if (!instr.info().Is(kElementwise) || instr.operand_count() == 0)
    return std::string(instr.info().name) + ": it is not an elementwise op";
  if (!HasFormula(instr))
    return std::string(instr.info().name) + " of " +
           std::string(HloName(instr.operand(0)->shape().type())) + ": it has no scalar formula";
  return std::nullopt;
}

}  // namespace tokamak
