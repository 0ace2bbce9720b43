#include <algorithm>
#include <limits>
#include <unordered_set>

#include "gen/reducer.h"
#include "passes/passes.h"
#include "passes/target/reduction_parts.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"

namespace tokamak {
namespace {

// Elements of an input worth more than one thread, results that are work enough, and parts that a
// result is made of. Columns are also cut so that whole rows are read at a time.
constexpr int64_t kReductionLong = 1 << 17, kManyResults = 256, kManyColumns = 16384,
                  kReductionMostParts = 64;
// Columns that are read at a time, at least.
constexpr int64_t kWideColumns = 32;
// Elements that a part of a result is made of, at least.
constexpr int64_t kReductionShortPart = 16;
// Blocks that a GPU needs of a kernel, elements of a part that are a block's work, and results that
// a block has when they lie side by side.
constexpr int64_t kGpuBlocks = 4, kGpuPart = 4096, kGpuResults = 32;
// Where a block goes through whole rows: parts for each multiprocessor, rows of one at least.
constexpr int64_t kGpuParts = 2, kGpuRows = 16;
// Elements from which rows are worth a kernel of their own.
constexpr int64_t kGpuRowsFirst = 1 << 14;
// Uneven parts, on a GPU: where there are so many times as many of them, and rows are longer than
// what a team keeps of one. Their size is a multiple of kReductionUnit elements of a row: vectors.
// On CPUs they gain nothing (sums of 16,777,259 elements take 6.5 ms on two cores either way).
constexpr int64_t kTimesMore = 4, kReductionLongRow = 1 << 17, kReductionUnit = 16;

// The most parts, at most `most`, that `length` falls into evenly.
Parts EvenParts(int64_t length, int64_t most) {
  for (int64_t parts = most; parts > 3; --parts)
    if (length % parts == 0) return {parts, length / parts, 0};
  return {1, length, 0};
}

// Uneven ones where those would be far fewer (a prime length has none).
Parts PartsOfLength(int64_t length, int64_t most, bool in_rows) {
  Parts even = EvenParts(length, most);
  int64_t unit = in_rows ? kReductionUnit : 1, size = length / most / unit * unit;
  if (even.count * kTimesMore > most || size == 0) return even;
  return {most, size, length - most * size};
}

// Dimensions of a reduce's input that lie side by side, all folded; they are cut as one.
struct Side {
  size_t begin = 0, end = 0;
  int64_t length = 1;
};

// Puts two reductions in the place of one: of parts, and of their results.
class Halver {
 public:
  Halver(Instr& reduce, const Reducer& reducer)
      : reduce_(reduce), reducer_(reducer), make_(reduce, Editor::Naming::kUnnamed) {}

  // Parts begin with an element that changes nothing; a pick takes its own first value once more.
  bool CanBegin() const {
    return reducer_.pick != Pick::kNone ||
           (reducer_.op && NeutralLiteral(*reducer_.op, reducer_.type(0)));
  }

  // The dimensions of a side fall into parts.
  void Split(const Side& side, const Parts& parts) {
    std::vector<Instr*> partial = PartialOf(side, 0, parts.count, parts.size);
    if (parts.rest > 0) {
      std::vector<Instr*> last = PartialOf(side, parts.count * parts.size, 1, parts.rest);
      for (size_t i = 0; i < partial.size(); ++i) partial[i] = Joined({partial[i], last[i]});
    }
    Finish(std::move(partial), {along_});
  }

  // The dimensions of a side are folded first.
  void FoldFirst(const Side& side) {
    Dims first, rest;
    for (int64_t d : reducer_.reduced) {
      auto at = static_cast<size_t>(d);
      (at >= side.begin && at < side.end ? first : rest).push_back(d);
    }
    for (int64_t& d : rest)
      if (d >= static_cast<int64_t>(side.end)) d -= static_cast<int64_t>(first.size());
    std::vector<Instr*> inputs;
    for (size_t i = 0; i < reducer_.count; ++i) inputs.push_back(reduce_.operand(i));
    Finish(Folded(inputs, first), rest);
  }

  Instr* partial() const { return partial_; }
  Instr* whole() const { return whole_; }

 private:
  // Elements of an operand, of those of a side that are `count` parts of `size` from `begin` on.
  Instr* Cut(Instr* x, const Side& side, int64_t begin, int64_t count, int64_t size) {
    Dims dims = x->shape().dims();
    auto first = dims.begin() + static_cast<int64_t>(side.begin);
    auto reshape = [&] {
      if (x->shape().dims() == dims) return;
      x = make_.Make(Op::kReshape, Shape::Array(x->shape().type(), dims), {x});
    };
    if (count * size < side.length) {
      dims.erase(first + 1, dims.begin() + static_cast<int64_t>(side.end));
      dims[side.begin] = side.length;
      reshape();
      SliceAttrs slice{Dims(dims.size(), 0), dims, Dims(dims.size(), 1)};
      slice.starts[side.begin] = begin;
      slice.limits[side.begin] = begin + count * size;
      dims[side.begin] = count * size;
      x = make_.Make(Op::kSlice, Shape::Array(x->shape().type(), dims), {x}, slice);
      first = dims.begin() + static_cast<int64_t>(side.begin);
    } else {
      dims.erase(first + 1, dims.begin() + static_cast<int64_t>(side.end));
    }
    *first = count;
    dims.insert(first + 1, size);
    reshape();
    return x;
  }

  // The results of `count` parts of a side, which is one dimension of them (`along_`).
  std::vector<Instr*> PartialOf(const Side& side, int64_t begin, int64_t count, int64_t size) {
    std::vector<Instr*> cut;
    for (size_t i = 0; i < reducer_.count; ++i)
      cut.push_back(Cut(reduce_.operand(i), side, begin, count, size));
    auto gone = static_cast<int64_t>(side.end - side.begin), at = static_cast<int64_t>(side.begin);
    Dims folded;
    for (int64_t d : reducer_.reduced)
      if (d < at) folded.push_back(d);
    along_ = at - static_cast<int64_t>(folded.size());
    folded.push_back(at + 1);
    for (int64_t d : reducer_.reduced)
      if (d >= at + gone) folded.push_back(d - gone + 2);
    return Folded(cut, folded);
  }

  Instr* Joined(std::vector<Instr*> pieces) {
    Dims dims = pieces[0]->shape().dims();
    auto along = static_cast<size_t>(along_);
    dims[along] += pieces[1]->shape().dim(along);
    Shape shape = Shape::Array(pieces[0]->shape().type(), dims);
    return make_.Make(Op::kConcatenate, shape, std::move(pieces), DimensionAttrs{along_});
  }

  // `inputs`: what is folded, in another form; `folded` of their dimensions. The arrays that come
  // of it.
  std::vector<Instr*> Folded(const std::vector<Instr*>& inputs, const Dims& folded) {
    std::vector<Shape> shapes;
    std::vector<Instr*> operands = inputs, results;
    for (const Instr* input : inputs) {
      Dims kept;
      for (size_t d = 0; d < input->shape().dims().size(); ++d)
        if (!std::binary_search(folded.begin(), folded.end(), static_cast<int64_t>(d)))
          kept.push_back(input->shape().dim(d));
      shapes.push_back(Shape::Array(input->shape().type(), kept));
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      operands.push_back(reducer_.pick != Pick::kNone
                             ? reduce_.operand(inputs.size() + i)
                             : make_.Constant(*NeutralLiteral(*reducer_.op, reducer_.type(i))));
    bool one = inputs.size() == 1;
    Instr* partial = make_.Make(Op::kReduce, one ? shapes[0] : Shape::Tuple(shapes),
                                std::move(operands), DimensionsAttrs{folded}, reduce_.called(0));
    partial->set_name(reduce_.name() + ".parts");
    if (partial_ == nullptr) partial_ = partial;
    for (size_t i = 0; i < inputs.size(); ++i)
      results.push_back(one ? partial
                            : make_.Make(Op::kGetTupleElement, shapes[i], {partial},
                                         TupleIndexAttrs{static_cast<int64_t>(i)}));
    return results;
  }

  // Folds `rest` of the dimensions of what the parts left, in the place of all.
  void Finish(std::vector<Instr*> again, const Dims& rest) {
    size_t count = again.size();
    for (size_t i = 0; i < count; ++i) again.push_back(reduce_.operand(count + i));
    whole_ = make_.Make(Op::kReduce, reduce_.shape(), std::move(again), DimensionsAttrs{rest},
                        reduce_.called(0));
    whole_->set_name(reduce_.name());
    make_.Replace(whole_);
  }

  Instr& reduce_;
  const Reducer& reducer_;
  Editor make_;
  int64_t along_ = 0;
  Instr *partial_ = nullptr, *whole_ = nullptr;
};

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

int64_t WantedOfGpu(int64_t folded, int64_t results, bool in_rows, const Machine& machine) {
  int64_t blocks = in_rows ? results : (results + kGpuResults - 1) / kGpuResults;
  int64_t wanted = (kGpuBlocks * machine.cores + blocks - 1) / blocks;
  int64_t part = in_rows ? kGpuPart : kGpuPart / kGpuResults;
  return std::min(wanted, folded / part);
}

// How many parts a result should have.
int64_t PartsWanted(const Reducer& reducer, int64_t results, const Machine& machine) {
  if (!machine.is_gpu()) {
    bool columns = !reducer.kept.empty() && reducer.kept.back() + 1 == reducer.input().rank() &&
                   reducer.input().dims().back() >= kWideColumns;
    return results >= (columns ? kManyColumns : kManyResults) ? 1 : kReductionMostParts;
  }
  bool in_rows = reducer.reduced.back() == reducer.input().rank() - 1;
  int64_t folded = reducer.input().ElementCount() / results;
  if (!in_rows && (RowsAreFoldedToo(*reducer.instr, results) || IsStoredToo(*reducer.instr)))
    return std::min(std::max(kGpuParts * machine.cores, kGpuBlocks), folded / kGpuRows);
  return WantedOfGpu(folded, results, in_rows, machine);
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

// On a GPU, where rows are folded and other dimensions before them: the rows, which threads read
// side by side. Nothing: there is no such side.
std::optional<Side> RowsToFoldFirst(const Reducer& reducer, const Machine& machine) {
  if (!machine.is_gpu() || reducer.input().ElementCount() < kGpuRowsFirst) return std::nullopt;
  std::vector<Side> sides = SidesOf(reducer, machine);
  if (sides.size() < 2 || sides.back().end != reducer.input().dims().size()) return std::nullopt;
  return sides.back();
}

// A side that falls into parts, and how many.
std::optional<std::pair<Side, Parts>> PartsOf(const Reducer& reducer, const Machine& machine) {
  int64_t count = reducer.input().ElementCount();
  int64_t results = PartsOf(reducer.instr->shape())[0].ElementCount();
  if (count < kReductionLong) return std::nullopt;
  int64_t wanted = PartsWanted(reducer, results, machine);
  if (wanted <= 1) return std::nullopt;
  // The first of those that are folded: its parts lie apart in memory.
  for (const Side& side : SidesOf(reducer, machine)) {
    bool in_rows = side.end == reducer.input().dims().size();
    bool even = !machine.is_gpu() || (in_rows && side.length < kReductionLongRow);
    Parts parts =
        even ? EvenParts(side.length, wanted) : PartsOfLength(side.length, wanted, in_rows);
    int64_t each = count / parts.count;
    if (parts.count > 1 && each >= 1024 && each >= kReductionShortPart * results)
      return std::pair(side, parts);
  }
  return std::nullopt;
}

bool TrySplitReduction(Instr& reduce, PassContext& context) {
  if (WhyNoReducer(reduce)) return false;
  Reducer reducer = ReducerOf(reduce);
  if (!reducer.any_order || reduce.captures() > 0 || reducer.reduced.empty()) return false;
  Halver halver(reduce, reducer);
  if (IsTied(reduce) || !halver.CanBegin()) return false;
  auto record = [&](std::string because) {
    context.Taken("reduce.split", reduce, nullptr, std::move(because));
  };
  if (std::optional<Side> rows = RowsToFoldFirst(reducer, context.machine())) {
    record("rows of " + std::to_string(rows->length) + " first");
    halver.FoldFirst(*rows);
    TrySplitReduction(*halver.partial(), context);
    TrySplitReduction(*halver.whole(), context);
    return true;
  }
  auto found = PartsOf(reducer, context.machine());
  if (!found) return false;
  record(std::to_string(found->second.count) +
         (found->second.rest > 0 ? " parts, and a rest" : " parts"));
  halver.Split(found->first, found->second);
  return true;
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

Parts PartsOfRows(int64_t length, int64_t results, const Machine& machine) {
  int64_t wanted = machine.is_gpu() ? WantedOfGpu(length, results, true, machine) : 1;
  return wanted > 3 ? PartsOfLength(length, wanted, true) : Parts{1, length, 0};
}

// A long reduction with few results becomes one with more, over parts, and one over those: so that
// there is work for many threads, in a tree that follows from the shape and the kind of machine
// alone. Sums of reals are rounded in another order than before.
Result<Changed> SplitReductions(Module& module, PassContext& context) {
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (Instr* instr : computation.Instrs())
      if (instr->op() == Op::kReduce && TrySplitReduction(*instr, context)) changed = true;
    return changed;
  });
}

}  // namespace tokamak
