// Pure values, including those that a GPU's pipes compute faster in another form.

#include <bit>
#include <cmath>

#include "backend/cuda/cuda_writer.h"

namespace tokamak::cuda {
namespace {

// Largest exponent magnitude of divisors for which no intermediate of DivideBy loses precision.
constexpr int kMostExponent = 40;

bool IsNarrow(ScalarType type) {
  return type == ScalarType::kBF16 || type == ScalarType::kF16;
}

void EraseStored(const StmtList& block, std::set<ValueId>& values) {
  for (const Stmt& stmt : block) {
    if (stmt.kind == StmtKind::kStore) values.erase(stmt.value);
    for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
      EraseStored(*inner, values);
  }
}

}  // namespace

std::set<ValueId> NarrowedQuotients(const Kernel& kernel) {
  std::set<ValueId> quotients;
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    bool narrows = node.prim == Prim::kConvert && IsNarrow(node.type);
    for (ValueId operand : kernel.operands(ValueId{static_cast<uint32_t>(i)}))
      if (!narrows) quotients.erase(operand);
    if (node.prim == Prim::kDiv && node.type == ScalarType::kF32)
      quotients.insert(ValueId{static_cast<uint32_t>(i)});
  }
  EraseStored(kernel.body, quotients);
  return quotients;
}

bool CudaWriter::DividesAllLanes(ValueId quotient) const {
  const ScalarNode& node = kernel_.node(quotient);
  return in_vector_ && !divergence_.ByLane(node.operands[1]) && narrowed_.contains(quotient);
}

std::string CudaWriter::SpelledOtherwise(ValueId id) {
  if (std::string narrow = SpelledNarrow(id); !narrow.empty()) return narrow;
  const ScalarNode& node = kernel_.node(id);
  if (multiplied_.contains(id)) {
    source_.helpers.insert(Helper::kOne);
    return fmt::format("{} * kOne + {}", Operand(node.operands[0]), Operand(node.operands[1]));
  }
  if (node.prim == Prim::kInverse && node.type == ScalarType::kF32) {
    // Accurate to 2 ulp, also for subnormals; the square root itself is then dead code.
    const ScalarNode& root = kernel_.node(node.operands[0]);
    if (root.prim != Prim::kSqrt) return "";
    return fmt::format("InverseRoot({})", Operand(root.operands[0]));
  }
  if (node.prim != Prim::kDiv || node.type != ScalarType::kF32) return "";
  if (DividesAllLanes(id)) {
    source_.helpers.insert(Helper::kNarrowDivision);
    return fmt::format("DivideNarrow({}, {})", Operand(node.operands[0]),
                       Operand(node.operands[1]));
  }
  // With open constants, guards are not known.
  if (open_ == nullptr && guarded_.contains(id)) {
    source_.helpers.insert(Helper::kApproximations);
    return fmt::format("InverseOfNormal({})", Operand(node.operands[1]));
  }
  const ScalarNode& by = kernel_.node(node.operands[1]);
  if (by.prim != Prim::kConst || (open_ != nullptr && open_->IsOpen(node.operands[1]))) return "";
  auto divisor = std::bit_cast<float>(static_cast<uint32_t>(by.bits));
  int exponent = 0;
  float fraction = std::frexp(std::abs(divisor), &exponent);
  if (!std::isfinite(divisor) || divisor == 0 || fraction == 0.5f ||
      std::abs(exponent) > kMostExponent)
    return "";
  source_.helpers.insert(Helper::kDivision);
  auto inverse = static_cast<Bits>(std::bit_cast<uint32_t>(1.0f / divisor));
  return fmt::format("DivideBy({}, {}, {})", Operand(node.operands[0]), Operand(node.operands[1]),
                     spelling_.Constant(ScalarType::kF32, inverse));
}

std::string CudaWriter::Spelled(ValueId id) {
  const ScalarNode& node = kernel_.node(id);
  ScalarType from = kernel_.node(node.operands[0]).type;
  NoteType(from);
  if (node.prim == Prim::kMinimum || node.prim == Prim::kMaximum)
    source_.helpers.insert(Helper::kExtremes);
  if (node.prim == Prim::kExp2 || node.prim == Prim::kInverse)
    source_.helpers.insert(Helper::kApproximations);
  if (std::string other = SpelledOtherwise(id); !other.empty()) return other;
  std::array<std::string, 3> operands;
  for (size_t i = 0; i < static_cast<size_t>(node.arity()); ++i)
    operands[i] = Operand(node.operands[i]);
  if (auto choice = RepeatedChoice(kernel_, id)) operands[0] = Hidden(*choice);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!signed_.contains({id, i})) continue;
    source_.helpers.insert(Helper::kSigns);
    operands[i] = fmt::format("WithSign({})", operands[i]);
  }
  return spelling_.Prim(node.prim, node.type, from, operands);
}

}  // namespace tokamak::cuda
