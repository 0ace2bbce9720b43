#include "kernel/verify_values.h"

#include <bit>

#include <fmt/format.h>

#include "support/limits.h"

namespace tokamak {
namespace {

// Elements of a shared or register array. Chosen: far above any hardware limit.
constexpr int64_t kMaxLocalElements = int64_t{1} << 24;

// Arrivals of a phase of an mbarrier (PTX ISA, mbarrier.init).
constexpr int64_t kMaxArrivals = (1 << 20) - 1;

bool IsNarrowFloat(ScalarType type) {
  return type == ScalarType::kF16 || type == ScalarType::kBF16;
}

class ValueVerifier {
 public:
  ValueVerifier(const Kernel& kernel, const KernelLocations* locations)
      : kernel_(kernel), locations_(locations) {}

  Status Run() {
    if (kernel_.index_bits != 32 && kernel_.index_bits != 64)
      return MakeError(ErrorCode::kKernelTypes,
                       fmt::format("kernel {}: an index of {} bits: 32 and 64 are there",
                                   kernel_.name, kernel_.index_bits));
    TOK_RETURN_IF_ERROR(Arrays());
    TOK_RETURN_IF_ERROR(Extents());
    for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
      id_ = ValueId{static_cast<uint32_t>(i)};
      TOK_RETURN_IF_ERROR(Value());
    }
    for (const Loop& loop : kernel_.loops)
      if (static_cast<size_t>(loop.extent) >= kernel_.nodes.size())
        return MakeError(ErrorCode::kKernelStructure,
                         fmt::format("loop {}: its extent is not a value", loop.name));
    return Ok();
  }

 private:
  Status Arrays() const {
    bool locals = false;
    for (const Array& array : kernel_.arrays) {
      bool is_argument = array.space == Space::kArgument;
      if (is_argument && locals)
        return Memory(fmt::format("argument {}: follows a local array", array.name));
      locals = locals || !is_argument;
      int64_t most = is_argument ? kMaxElements : kMaxLocalElements;
      if (array.size < (is_argument ? 0 : 1) || array.size > most)
        return Memory(
            fmt::format("{} {}: {} elements", TextOf(array.space), array.name, array.size));
      if (array.alignment < 1 || !std::has_single_bit(static_cast<uint64_t>(array.alignment)))
        return Memory(fmt::format("{} {}: alignment {} is not a power of two", TextOf(array.space),
                                  array.name, array.alignment));
      bool is_mbarrier =
          array.type == ScalarType::kU64 && array.arrivals >= 1 && array.arrivals <= kMaxArrivals;
      if (array.space == Space::kMbarrier && !is_mbarrier)
        return Memory(fmt::format("mbarrier {}: {} of {} arrivals, not u64 of 1 to {}", array.name,
                                  InfoOf(array.type).text, array.arrivals, kMaxArrivals));
    }
    return Ok();
  }

  static Status Memory(std::string message) {
    return MakeError(ErrorCode::kKernelMemory, std::move(message));
  }

  Status Extents() const {
    for (const LaunchExtent& extent : kernel_.extents)
      if (extent.multiple_of < 1 || extent.minimum < 0 || extent.minimum > extent.maximum)
        return MakeError(
            ErrorCode::kKernelStructure,
            fmt::format("extent {}: {}..{}, multiple of {}: no number is so", extent.name,
                        extent.minimum, extent.maximum, extent.multiple_of));
    return Ok();
  }

  const ScalarNode& Node() const { return kernel_.node(id_); }
  ScalarType Type(size_t i) const { return kernel_.node(Node().operands[i]).type; }

  Error VerifyError(ErrorCode code, const std::string& what) const {
    std::string message = fmt::format("{}: {}", InfoOf(Node().prim).text, what);
    if (locations_ != nullptr) return MakeError(code, std::move(message), locations_->OfValue(id_));
    return MakeError(code, fmt::format("kernel {}: value {}: {}", kernel_.name,
                                       static_cast<uint32_t>(id_), message));
  }
  Error Types(const std::string& what) const { return VerifyError(ErrorCode::kKernelTypes, what); }

  Status Value() const {
    const ScalarNode& node = Node();
    if (static_cast<size_t>(node.prim) > static_cast<size_t>(Prim::kMatch) ||
        static_cast<size_t>(node.type) > static_cast<size_t>(ScalarType::kIndex))
      return MakeError(ErrorCode::kKernelTypes, "a value of no primitive or type");
    auto arity = static_cast<size_t>(node.arity());
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (i >= arity && node.operands[i] != kNoValue)
        return Types(fmt::format("more than its {} operands", arity));
      if (i < arity && node.operands[i] >= id_)
        return VerifyError(ErrorCode::kKernelStructure,
                           fmt::format("operand {} is not an earlier value", i));
    }
    switch (InfoOf(node.prim).result) {
      case PrimResult::kFree:
        return Free();
      case PrimResult::kLast:
        return Select();
      case PrimResult::kSame:
      case PrimResult::kPred:
        return Plain();
    }
    return Ok();
  }

  Status Select() const {
    if (Type(0) != ScalarType::kPred) return Types("the first operand is not a pred");
    if (Type(1) != Type(2) || Node().type != Type(1))
      return Types(fmt::format("{} of {} and {}", Text(Node().type), Text(Type(1)), Text(Type(2))));
    return Ok();
  }

  Status Plain() const {
    const ScalarNode& node = Node();
    const PrimInfo& info = InfoOf(node.prim);
    ScalarType type = Type(0);
    for (size_t i = 1; i < static_cast<size_t>(info.arity); ++i)
      if (Type(i) != type)
        return Types(fmt::format("operands of types {} and {}", Text(type), Text(Type(i))));
    ScalarType expected = info.result == PrimResult::kPred ? ScalarType::kPred : type;
    if (node.type != expected)
      return Types(fmt::format("its type is {}, expected {}", Text(node.type), Text(expected)));
    if (!Takes(info.operands, type)) return Types(fmt::format("operands of type {}", Text(type)));
    if (IsNarrowFloat(type))
      return Types(fmt::format("of {}, which is for memory only: convert it to f32", Text(type)));
    return Ok();
  }

  static bool Takes(PrimOperands operands, ScalarType type) {
    switch (operands) {
      case PrimOperands::kAny:
        return true;
      case PrimOperands::kIndexOnly:
        return type == ScalarType::kIndex;
      case PrimOperands::kNumber:
        return IsInteger(type) || IsFloat(type);
      case PrimOperands::kInteger:
        return IsInteger(type);
      case PrimOperands::kFloat:
        return IsFloat(type);
      case PrimOperands::kBits:
        return IsInteger(type) || type == ScalarType::kPred;
    }
    return false;
  }

  Status Free() const {
    const ScalarNode& node = Node();
    switch (node.prim) {
      case Prim::kConst:
        if (InfoOf(node.type).bits < 64 && (node.bits >> InfoOf(node.type).bits) != 0)
          return Types("bits above the width of its type");
        return Ok();
      case Prim::kLoop:
        return Numbered(kernel_.loops.size(), "loop");
      case Prim::kExtent:
        return Numbered(kernel_.extents.size(), "extent");
      case Prim::kLoad:
      case Prim::kRead:
        return Element();
      case Prim::kShuffle:
        if (node.type != Type(0)) return Types("the result type differs from the operand type");
        if (!IsInteger(Type(1))) return Types(fmt::format("a lane of type {}", Text(Type(1))));
        return Ok();
      case Prim::kMatch:
        if (node.type != ScalarType::kU32 || Type(0) != ScalarType::kU32)
          return Types(fmt::format("{} of {}", Text(node.type), Text(Type(0))));
        return MatchedBits();
      case Prim::kConvert:
        return Convert();
      default:  // bitcast
        if (InfoOf(node.type).bits != InfoOf(Type(0)).bits || node.type == ScalarType::kPred)
          return Types(fmt::format("{} as {}", Text(Type(0)), Text(node.type)));
        return Ok();
    }
  }

  Status MatchedBits() const {
    const ScalarNode& bits = kernel_.node(Node().operands[1]);
    if (bits.prim != Prim::kConst || bits.type != ScalarType::kIndex || bits.bits < 1 ||
        bits.bits > 32)
      return Types("the number of bits is not a constant from 1 to 32");
    return Ok();
  }

  Status Numbered(size_t count, std::string_view what) const {
    if (Node().type != ScalarType::kIndex) return Types("it is an index");
    if (Node().bits >= count)
      return VerifyError(ErrorCode::kKernelStructure, fmt::format("there is no such {}", what));
    if (Node().prim == Prim::kLoop && kernel_.loop(Node().loop()).extent >= id_)
      return VerifyError(ErrorCode::kKernelStructure,
                         "the extent of its loop is not an earlier value");
    return Ok();
  }

  Status Convert() const {
    ScalarType to = Node().type, from = Type(0);
    bool narrow = IsNarrowFloat(to) || IsNarrowFloat(from);
    if (to == ScalarType::kPred || (narrow && !(IsFloat(to) && IsFloat(from))))
      return Types(fmt::format("{} to {}", Text(from), Text(to)));
    return Ok();
  }

  Status Element() const {
    const ScalarNode& node = Node();
    if (node.bits >= kernel_.arrays.size())
      return VerifyError(ErrorCode::kKernelMemory, "there is no such array");
    const Array& array = kernel_.array(node.array());
    if (node.type != array.type)
      return Types(fmt::format("a {} of {}, whose elements are {}", Text(node.type), array.name,
                               Text(array.type)));
    if (Type(0) != ScalarType::kIndex)
      return Types(fmt::format("an index of type {}", Text(Type(0))));
    bool is_argument = array.space == Space::kArgument;
    if (node.prim == Prim::kLoad && (!is_argument || array.access != Access::kRead))
      return VerifyError(ErrorCode::kKernelMemory,
                         fmt::format("{} is also written: it is read in order", array.name));
    if (node.prim == Prim::kRead && is_argument && array.access == Access::kWrite)
      return VerifyError(ErrorCode::kKernelMemory, fmt::format("{} is only written", array.name));
    return Ok();
  }

  static std::string_view Text(ScalarType type) { return InfoOf(type).text; }

  const Kernel& kernel_;
  const KernelLocations* locations_;
  ValueId id_{};
};

}  // namespace

Status VerifyValues(const Kernel& kernel, const KernelLocations* locations) {
  return ValueVerifier(kernel, locations).Run();
}

}  // namespace tokamak
