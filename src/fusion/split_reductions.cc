#include "fusion/split_reductions.h"

#include <algorithm>
#include <limits>

#include "gen/reducer.h"

namespace tokamak {
namespace {

// Elements of an input worth more than one thread, results that are work enough, and parts that a
// result is made of. Columns are also cut so that whole rows are read at a time.
constexpr int64_t kLong = 1 << 17, kManyResults = 256, kManyColumns = 16384, kMostParts = 64;
// Columns that are read at a time, at least.
constexpr int64_t kWide = 32;
// Elements that a part of a result is made of, at least.
constexpr int64_t kShortPart = 16;
// Blocks that a GPU needs of a kernel, elements of a part that are a block's work, and results that
// a block has when they lie side by side.
constexpr int64_t kGpuBlocks = 4, kGpuPart = 4096, kGpuResults = 32;

// The most parts, at most `most`, that `length` falls into evenly.
int64_t PartsOfLength(int64_t length, int64_t most) {
  for (int64_t parts = most; parts > 3; --parts)
    if (length % parts == 0) return parts;
  return 1;
}

// Splits dimension d of a reduce's input into parts.
void Split(Instr& reduce, size_t d, int64_t parts, const Literal& neutral, DecisionLog& log) {
  Computation& computation = *reduce.parent();
  Instr* input = reduce.operand(0);
  Reducer reducer = ReducerOf(reduce);
  Dims dims = input->shape().dims();
  dims[d] /= parts;
  dims.insert(dims.begin() + static_cast<int64_t>(d), parts);
  Shape plain = Shape::Array(input->shape().type(), dims);
  Instr* cut = computation.Append(Op::kReshape, plain, {input});
  // All dimensions that were folded, but for the parts.
  Dims folded, rest, kept;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t before = static_cast<int64_t>(i > d ? i - 1 : i);
    bool is_folded =
        std::find(reducer.reduced.begin(), reducer.reduced.end(), before) != reducer.reduced.end();
    if (i == d) rest.push_back(static_cast<int64_t>(kept.size()));
    if (i != d && is_folded) {
      folded.push_back(static_cast<int64_t>(i));
    } else {
      kept.push_back(dims[i]);
    }
  }
  Instr* zero =
      computation.Append(Op::kConstant, Shape::Scalar(plain.type()), {}, ConstantAttrs{neutral});
  Instr* partial = computation.Append(Op::kReduce, Shape::Array(plain.type(), kept), {cut, zero},
                                      DimensionsAttrs{folded}, reduce.name() + ".parts");
  partial->set_called({reduce.called(0)});
  Instr* whole = computation.Append(Op::kReduce, reduce.shape(), {partial, reduce.operand(1)},
                                    DimensionsAttrs{rest}, reduce.name());
  whole->set_called({reduce.called(0)});
  for (Instr* made : {cut, zero, partial, whole}) {
    made->set_origins(reduce.origins());
    made->set_pos(reduce.pos());
  }
  log.Add({.pass = "fuse",
           .rule = "reduce.split",
           .subject = LabelOf(reduce),
           .origins = reduce.origins(),
           .because = std::to_string(parts) + " parts"});
  bool is_root = computation.root() == &reduce;
  computation.ReplaceUses(&reduce, whole);
  if (is_root) computation.set_root(whole);
  computation.Remove(&reduce);
}

// How many parts a result should have.
int64_t PartsWanted(const Reducer& reducer, int64_t results, const Machine& machine) {
  if (!machine.is_gpu()) {
    bool columns = !reducer.kept.empty() && reducer.kept.back() + 1 == reducer.input().rank() &&
                   reducer.input().dims().back() >= kWide;
    return results >= (columns ? kManyColumns : kManyResults) ? 1 : kMostParts;
  }
  bool in_rows = reducer.reduced.back() == reducer.input().rank() - 1;
  int64_t blocks = in_rows ? results : (results + kGpuResults - 1) / kGpuResults;
  int64_t wanted = (kGpuBlocks * machine.cores + blocks - 1) / blocks;
  int64_t part = in_rows ? kGpuPart : kGpuPart / kGpuResults;
  return std::min(wanted, reducer.input().ElementCount() / results / part);
}

bool TrySplit(Instr& reduce, DecisionLog& log, const Machine& machine) {
  if (WhyNoReducer(reduce)) return false;
  Reducer reducer = ReducerOf(reduce);
  if (!reducer.any_order || reduce.captures() > 0 || !reduce.shape().IsArray()) return false;
  if (IsTied(reduce)) return false;
  int64_t results = reduce.shape().ElementCount(), count = reducer.input().ElementCount();
  if (count < kLong || reducer.reduced.empty()) return false;
  int64_t wanted = PartsWanted(reducer, results, machine);
  if (wanted <= 1) return false;
  std::optional<Literal> neutral = NeutralLiteral(*reducer.op, reducer.type(0));
  if (!neutral) return false;
  // The first dimension of those that are folded: its parts lie apart in memory.
  for (int64_t d : reducer.reduced) {
    int64_t parts = PartsOfLength(reducer.input().dim(static_cast<size_t>(d)), wanted);
    if (parts == 1 || count / parts < 1024 || count / parts < kShortPart * results) continue;
    Split(reduce, static_cast<size_t>(d), parts, *neutral, log);
    return true;
  }
  return false;
}

}  // namespace

std::optional<Literal> NeutralLiteral(Op op, ElementType type) {
  bool real = type == ElementType::kF32 || type == ElementType::kF64;
  bool integer = IsInteger(type) && InfoOf(type).bits >= 8;
  if (!real && !integer) return std::nullopt;
  double infinity = std::numeric_limits<double>::infinity();
  int bits = InfoOf(type).bits;
  int64_t least = IsSigned(type) ? std::numeric_limits<int64_t>::min() >> (64 - bits) : 0;
  switch (op) {
    case Op::kAdd:
      return real ? Literal::Scalar(type, -0.0) : Literal::ScalarInt(type, 0);
    case Op::kMultiply:
      return Literal::Scalar(type, 1);
    case Op::kMaximum:
      return real ? Literal::Scalar(type, -infinity) : Literal::ScalarInt(type, least);
    case Op::kMinimum:
      return real ? Literal::Scalar(type, infinity) : Literal::ScalarInt(type, ~least);
    case Op::kAnd:
      return Literal::ScalarInt(type, -1);
    case Op::kOr:
    case Op::kXor:
      return Literal::ScalarInt(type, 0);
    default:
      return std::nullopt;
  }
}

void SplitReductions(Module& module, DecisionLog& log, const Machine& machine) {
  for (const auto& computation : module.computations()) {
    bool changed = false;
    for (Instr* instr : computation->Instrs())
      if (instr->op() == Op::kReduce && TrySplit(*instr, log, machine)) changed = true;
    if (changed) computation->PutInOrder();
  }
}

}  // namespace tokamak
