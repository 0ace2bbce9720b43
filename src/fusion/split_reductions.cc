#include "fusion/split_reductions.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

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
// Where a block goes through whole rows: parts for each multiprocessor, rows of one at least.
constexpr int64_t kGpuParts = 2, kGpuRows = 16;

// The most parts, at most `most`, that `length` falls into evenly.
int64_t PartsOfLength(int64_t length, int64_t most) {
  for (int64_t parts = most; parts > 3; --parts)
    if (length % parts == 0) return parts;
  return 1;
}

// Dimensions of a reduce's input that lie side by side, all folded; they are cut as one.
struct Side {
  size_t begin = 0, end = 0;
  int64_t length = 1;
};

// Splits the dimensions of a side into parts.
void Split(Instr& reduce, const Side& side, int64_t parts, const Literal& neutral,
           DecisionLog& log) {
  Computation& computation = *reduce.parent();
  Instr* input = reduce.operand(0);
  Reducer reducer = ReducerOf(reduce);
  const Dims& from = input->shape().dims();
  Dims dims, folded, rest, kept;
  auto add = [&](int64_t size, bool is_folded) {
    if (is_folded) {
      folded.push_back(static_cast<int64_t>(dims.size()));
    } else {
      kept.push_back(size);
    }
    dims.push_back(size);
  };
  for (size_t d = 0; d < from.size(); ++d) {
    if (d == side.begin) {
      rest.push_back(static_cast<int64_t>(kept.size()));
      add(parts, false);
      add(side.length / parts, true);
    }
    if (d >= side.begin && d < side.end) continue;
    auto at = static_cast<int64_t>(d);
    add(from[d], std::binary_search(reducer.reduced.begin(), reducer.reduced.end(), at));
  }
  Shape plain = Shape::Array(input->shape().type(), dims);
  Instr* cut = computation.Append(Op::kReshape, plain, {input});
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

// Whether a reduction folds whole rows of `row` elements of an array of `count`.
bool FoldsRows(const Instr& instr, int64_t count, int64_t row) {
  if (instr.op() != Op::kReduce) return false;
  Reducer reducer = ReducerOf(instr);
  return !reducer.reduced.empty() && reducer.reduced.back() + 1 == reducer.input().rank() &&
         reducer.input().ElementCount() == count &&
         PartsOf(instr.shape())[0].ElementCount() * row == count;
}

// Whether rows of what a reduce of columns folds are folded, too: of arrays of as many elements
// that are computed from each other, or from one number a row, near it. One kernel may go through
// them for both.
bool RowsAreFoldedToo(const Instr& reduce, int64_t row) {
  constexpr size_t kLookAt = 64;
  int64_t count = reduce.operand(0)->shape().ElementCount();
  std::unordered_set<const Instr*> seen;
  std::vector<const Instr*> open = {reduce.operand(0)};
  auto meet = [&](const Instr* instr) {
    if (!instr->shape().IsArray() || seen.size() >= kLookAt) return;
    int64_t own = instr->shape().ElementCount();
    if ((own == count || own * row == count) && seen.insert(instr).second) open.push_back(instr);
  };
  auto computes = [](const Instr& instr) {
    return instr.info().Is(kElementwise) || instr.op() == Op::kReshape ||
           instr.op() == Op::kBroadcast;
  };
  while (!open.empty()) {
    const Instr& instr = *open.back();
    open.pop_back();
    if (FoldsRows(instr, count, row)) return true;
    if (computes(instr))
      for (const Instr* operand : instr.operands()) meet(operand);
    for (const Instr* user : instr.users()) {
      if (FoldsRows(*user, count, row)) return true;
      if (computes(*user)) meet(user);
    }
  }
  return false;
}

// Whether what a reduce folds is computed element by element, and stored for others as well: the
// kernel that writes it may sum up its columns.
bool IsStoredToo(const Instr& reduce) {
  const Instr* of = reduce.operand(0);
  while ((of->op() == Op::kConvert || of->op() == Op::kReshape) && of->users().size() == 1)
    of = of->operand(0);
  if (!of->info().Is(kElementwise)) return false;
  return of->parent()->root() == of ||
         std::any_of(of->users().begin(), of->users().end(), [](const Instr* user) {
           return user->op() == Op::kTuple || user->op() == Op::kDot;
         });
}

// How many parts a result should have.
int64_t PartsWanted(const Reducer& reducer, int64_t results, const Machine& machine) {
  if (!machine.is_gpu()) {
    bool columns = !reducer.kept.empty() && reducer.kept.back() + 1 == reducer.input().rank() &&
                   reducer.input().dims().back() >= kWide;
    return results >= (columns ? kManyColumns : kManyResults) ? 1 : kMostParts;
  }
  bool in_rows = reducer.reduced.back() == reducer.input().rank() - 1;
  int64_t folded = reducer.input().ElementCount() / results;
  if (!in_rows && (RowsAreFoldedToo(*reducer.instr, results) || IsStoredToo(*reducer.instr)))
    return std::min(std::max(kGpuParts * machine.cores, kGpuBlocks), folded / kGpuRows);
  int64_t blocks = in_rows ? results : (results + kGpuResults - 1) / kGpuResults;
  int64_t wanted = (kGpuBlocks * machine.cores + blocks - 1) / blocks;
  int64_t part = in_rows ? kGpuPart : kGpuPart / kGpuResults;
  return std::min(wanted, folded / part);
}

// The folded dimensions, those that lie side by side together on a GPU.
std::vector<Side> SidesOf(const Reducer& reducer, const Machine& machine) {
  std::vector<Side> sides;
  for (int64_t dimension : reducer.reduced) {
    auto d = static_cast<size_t>(dimension);
    if (!machine.is_gpu() || sides.empty() || sides.back().end != d) sides.push_back({d, d, 1});
    sides.back().end = d + 1;
    sides.back().length *= reducer.input().dim(d);
  }
  return sides;
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
  // The first of those that are folded: its parts lie apart in memory.
  for (const Side& side : SidesOf(reducer, machine)) {
    int64_t parts = PartsOfLength(side.length, wanted);
    if (parts == 1 || count / parts < 1024 || count / parts < kShortPart * results) continue;
    Split(reduce, side, parts, *neutral, log);
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
