#include "ir/op.h"

#include <array>
#include <unordered_map>

namespace tokamak {
namespace {

using enum ShapeRule;

constexpr std::array kOps = {
#define TOK_OP(id, name, mlir, arity, types, shape, traits, flops, attrs, meaning) \
  OpInfo{Op::k##id, name, mlir, arity, types, shape, traits, flops, #attrs, meaning},
#include "ir/ops.def"
};

constexpr bool NamesAreUnique() {
  for (size_t i = 0; i < kOps.size(); ++i) {
    for (size_t j = i + 1; j < kOps.size(); ++j) {
      if (kOps[i].name == kOps[j].name) return false;
      if (!kOps[i].mlir.empty() && kOps[i].mlir == kOps[j].mlir) return false;
    }
  }
  return true;
}
static_assert(NamesAreUnique(), "two rows of ops.def share a name");
static_assert(kOps.size() == kOpCount);

using NameMap = std::unordered_map<std::string_view, Op>;

NameMap MapBy(std::string_view OpInfo::*name) {
  NameMap map;
  for (const OpInfo& info : kOps)
    if (!(info.*name).empty()) map.emplace(info.*name, info.op);
  return map;
}

std::optional<Op> Lookup(const NameMap& map, std::string_view name) {
  auto it = map.find(name);
  return it == map.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace

const OpInfo& InfoOf(Op op) {
  return kOps[static_cast<size_t>(op)];
}
std::span<const OpInfo> AllOps() {
  return kOps;
}

std::optional<Op> OpFromName(std::string_view name) {
  static const NameMap map = MapBy(&OpInfo::name);
  return Lookup(map, name);
}

std::optional<Op> OpFromMlirName(std::string_view name) {
  static const NameMap map = MapBy(&OpInfo::mlir);
  return Lookup(map, name);
}

bool IsCommutative(Op op) {
  switch (op) {
    case Op::kAdd:
    case Op::kMultiply:
    case Op::kMaximum:
    case Op::kMinimum:
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
      return true;
    default:
      return false;
  }
}

bool RunsComputations(Op op) {
  return op == Op::kWhile || op == Op::kConditional || op == Op::kCall;
}

std::span<const std::string_view> CalledRoles(Op op) {
  static constexpr std::string_view kToApply[] = {"to_apply"};
  static constexpr std::string_view kCalls[] = {"calls"};
  static constexpr std::string_view kWhile[] = {"condition", "body"};
  static constexpr std::string_view kBranches[] = {"branch_computations*"};
  static constexpr std::string_view kSelectScatter[] = {"select", "scatter"};
  static constexpr std::string_view kCalled[] = {"called_computations*"};
  switch (op) {
    case Op::kReduce:
    case Op::kReduceWindow:
    case Op::kScatter:
    case Op::kMap:
    case Op::kSort:
    case Op::kScan:
    case Op::kCall:
    case Op::kAllReduce:
    case Op::kAllReduceStart:
    case Op::kReduceScatter:
    case Op::kCollectiveReduce:
    case Op::kManualComputation:
      return kToApply;
    case Op::kFusion:
    case Op::kAsyncStart:
    case Op::kAsyncUpdate:
    case Op::kAsyncDone:
      return kCalls;
    case Op::kWhile:
      return kWhile;
    case Op::kConditional:
      return kBranches;
    case Op::kSelectAndScatter:
      return kSelectScatter;
    case Op::kCustomCall:
    case Op::kComposite:
    case Op::kRunParallel:
      return kCalled;
    default:
      return {};  // every other op calls nothing
  }
}

}  // namespace tokamak
