// lint.gather-is-slice, lint.scatter-is-dense: constant indices at equal distances.
// lint.one-hot-matmul: a product with a one-hot matrix selects rows.

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "driver/report/lint/known_integers.h"
#include "driver/report/lint/lint_subject.h"

namespace tokamak {
namespace {

// Index vectors that a finding needs: one index is a slice in any spelling (chosen).
constexpr int64_t kMinIndices = 2;
// Elements of a one-hot matrix below which its product costs no more than a launch (chosen).
constexpr int64_t kMinOneHot = int64_t{1} << 14;

// Index vectors that are start, start + step, start + 2 * step ... in one dimension, and equal in
// the others.
struct IndexRange {
  int64_t count = 0, start = 0, step = 0;
  size_t component = 0;  // of the index vector: the one that varies

  int64_t last() const { return start + (count - 1) * step; }
  // Whether all indices are those of a dimension of this size.
  bool IsIn(int64_t size) const {
    return std::min(start, last()) >= 0 && std::max(start, last()) < size;
  }
};

std::optional<IndexRange> RangeOf(const Instr& indices, int64_t index_vector_dim) {
  const Shape& shape = indices.shape();
  if (!shape.IsStaticArray() || !IsInteger(shape.type())) return std::nullopt;
  std::optional<std::vector<int64_t>> constant = IntegersOf(indices);
  if (!constant) return std::nullopt;
  // The vector is the last dimension, or each index is a scalar.
  int64_t width = index_vector_dim == shape.rank() ? 1 : shape.dims().back();
  if (index_vector_dim < shape.rank() - 1 || width == 0) return std::nullopt;
  IndexRange range{.count = shape.ElementCount() / width};
  if (range.count < kMinIndices) return std::nullopt;
  bool varies = false;
  for (int64_t c = 0; c < width; ++c) {
    auto at = [&](int64_t i) { return (*constant)[static_cast<size_t>(i * width + c)]; };
    int64_t start = at(0), step = at(1) - start;
    for (int64_t i = 1; i < range.count; ++i)
      if (at(i) != start + i * step) return std::nullopt;
    if (step == 0) continue;
    if (varies) return std::nullopt;
    varies = true;
    range.start = start;
    range.step = step;
    range.component = static_cast<size_t>(c);
  }
  return varies ? std::optional(range) : std::nullopt;
}

// "x[3:19:2]".
std::string SliceText(const IndexRange& range, const char* name) {
  std::string end = range.step > 0     ? std::to_string(range.last() + 1)
                    : range.last() > 0 ? std::to_string(range.last() - 1)
                                       : "";
  std::string stride = range.step == 1 ? "" : fmt::format(":{}", range.step);
  return fmt::format("{}[{}:{}{}]", name, range.start, end, stride);
}

// Adds a warning if instructions of this op still run, else a note.
void AddIndexing(LintSubject& subject, const Instr& instr, const char* rule, int64_t bytes,
                 const std::string& problem, const std::string& instead) {
  std::vector<const Instr*> compiled = subject.CompiledAs(instr);
  if (compiled.empty()) {
    if (subject.StepsOf(instr).empty()) return;  // nothing of it runs
    subject.AddAvoided(rule, LintLinesOf({&instr}), problem + " runs as a copy",
                       subject.UsOfBytes(bytes));
    return;
  }
  double us = 0;
  std::vector<std::string> own = LintLinesOf({&instr});
  for (size_t step : subject.StepsOf(instr)) {
    const StepReport& report = subject.report().steps[step];
    // A scatter may be several steps: those of its line only are its own.
    bool is_own = instr.op() == Op::kScatter && report.lines == own;
    us += is_own ? subject.Claim(step, report.us()) : subject.ClaimBytes(step, bytes);
  }
  subject.Add(
      {.rule = rule, .lines = LintLinesOf({&instr}), .us = us, .text = problem + ": " + instead});
}

void LookAtGather(LintSubject& subject, const Instr& gather) {
  const GatherAttrs& attrs = gather.attrs<GatherAttrs>();
  std::optional<IndexRange> range = RangeOf(*gather.operand(1), attrs.index_vector_dim);
  if (!range) return;
  auto dimension = static_cast<size_t>(attrs.start_index_map[range->component]);
  if (!range->IsIn(gather.operand(0)->shape().dim(dimension))) return;
  AddIndexing(subject, gather, "lint.gather-is-slice", 2 * LintBytes(gather),
              fmt::format("a gather of {} constant indices at equal distances", range->count),
              fmt::format("{} along dimension {} is a slice", SliceText(*range, "x"), dimension));
}

void LookAtScatter(LintSubject& subject, const Instr& scatter) {
  const ScatterAttrs& attrs = scatter.attrs<ScatterAttrs>();
  size_t inputs = scatter.operand_count() / 2;
  const Instr& indices = *scatter.operand(inputs);
  std::optional<IndexRange> range = RangeOf(indices, attrs.index_vector_dim);
  if (!range) return;
  auto dimension = static_cast<size_t>(attrs.scatter_dims_to_operand_dims[range->component]);
  const Shape& operand = scatter.operand(0)->shape();
  if (!range->IsIn(operand.dim(dimension))) return;
  const Instr& updates = *scatter.operand(inputs + 1);
  bool is_all = range->count == operand.dim(dimension) &&
                updates.shape().ElementCount() == operand.ElementCount();
  std::string instead = is_all
                            ? "every element is written once: compute with the updates themselves"
                            : fmt::format("{}.set(...) along dimension {} needs no indices",
                                          SliceText(*range, "x.at"), dimension);
  AddIndexing(subject, scatter, "lint.scatter-is-dense", 2 * LintBytes(updates),
              fmt::format("a scatter to {} constant indices at equal distances", range->count),
              instead);
}

// ---- one-hot products

// Where dimension `dim` of a value comes from in its operand, through one rename; nullopt if it has
// no counterpart.
std::optional<int64_t> ThroughRename(const Instr& value, int64_t dim) {
  switch (value.op()) {
    case Op::kConvert:
    case Op::kCopy:
      return dim;
    case Op::kBroadcast: {
      const Dims& dims = value.attrs<DimensionsAttrs>().dimensions;
      for (size_t i = 0; i < dims.size(); ++i)
        if (dims[i] == dim)
          return value.operand(0)->shape().dim(i) == value.shape().dim(static_cast<size_t>(dim))
                     ? std::optional(static_cast<int64_t>(i))
                     : std::nullopt;
      return std::nullopt;
    }
    case Op::kTranspose:
      return value.attrs<DimensionsAttrs>().dimensions[static_cast<size_t>(dim)];
    case Op::kReshape: {
      // Only dimensions of one element may come or go.
      const Dims &to = value.shape().dims(), &from = value.operand(0)->shape().dims();
      size_t at = 0;
      for (size_t i = 0; i < to.size(); ++i) {
        if (to[i] == 1) continue;
        while (at < from.size() && from[at] == 1) ++at;
        if (at == from.size() || from[at] != to[i]) return std::nullopt;
        if (static_cast<int64_t>(i) == dim) return static_cast<int64_t>(at);
        ++at;
      }
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

// The instruction of this op that the value is through renames; null if there is none. `dim`
// becomes its counterpart there.
const Instr* FollowTo(Op op, const Instr* value, int64_t& dim) {
  while (value->op() != op) {
    if (value->operand_count() != 1) return nullptr;
    std::optional<int64_t> from = ThroughRename(*value, dim);
    if (!from) return nullptr;
    dim = *from;
    value = value->operand(0);
  }
  return value;
}

// Whether the value is the index along its dimension `dim`.
bool IsIotaAlong(const Instr* value, int64_t dim) {
  const Instr* iota = FollowTo(Op::kIota, value, dim);
  return iota != nullptr && iota->attrs<IotaAttrs>().dimension == dim;
}

// Whether the value is the same for all indices of dimension `dim`.
bool IsConstantAlong(const Instr* value, int64_t dim) {
  while (value->operand_count() == 1) {
    std::optional<int64_t> from = ThroughRename(*value, dim);
    if (!from) return value->op() == Op::kBroadcast;
    dim = *from;
    value = value->operand(0);
  }
  return false;
}

// Whether an operand of a dot is one-hot along `dim`: (indices == iota) as numbers.
bool IsOneHot(const Instr* value, int64_t dim) {
  const Instr* compare = FollowTo(Op::kCompare, value, dim);
  if (compare == nullptr || compare->attrs<CompareAttrs>().direction != CompareDirection::kEq)
    return false;
  const Instr *x = compare->operand(0), *y = compare->operand(1);
  return IsInteger(x->shape().type()) && ((IsIotaAlong(y, dim) && IsConstantAlong(x, dim)) ||
                                          (IsIotaAlong(x, dim) && IsConstantAlong(y, dim)));
}

void LookAtProductOfOneHot(LintSubject& subject, const Instr& dot) {
  const DotAttrs& attrs = dot.attrs<DotAttrs>();
  if (attrs.lhs_contracting.size() != 1 || !attrs.lhs_batch.empty()) return;
  bool left = IsOneHot(dot.operand(0), attrs.lhs_contracting[0]);
  bool right = !left && IsOneHot(dot.operand(1), attrs.rhs_contracting[0]);
  if (!left && !right) return;
  const Instr& one_hot = *dot.operand(left ? 0 : 1);
  if (one_hot.shape().ElementCount() < kMinOneHot) return;
  int64_t taken = 2 * LintBytes(dot);
  std::vector<const Instr*> compiled = subject.CompiledAs(dot);
  if (compiled.empty()) {
    if (subject.StepsOf(dot).empty()) return;
    subject.AddAvoided("lint.one-hot-matmul", LintLinesOf({&dot}),
                       "the product with a one-hot matrix runs without a product");
    return;
  }
  double us = 0, gather_us = subject.UsOfBytes(taken);
  for (const Instr* stored : subject.CompiledAs(one_hot))
    if (const LintSubject::Traffic& traffic = subject.TrafficOf(*stored); traffic.is_stored)
      us += subject.ClaimTraffic(traffic, LintBytes(*stored));
  for (const Instr* product : compiled)
    for (size_t step : subject.TrafficOf(*product).steps) {
      const StepReport& report = subject.report().steps[step];
      bool makes = std::find(report.made.begin(), report.made.end(), product) != report.made.end();
      if (makes) us += subject.Claim(step, report.us() - gather_us);
    }
  if (us == 0)
    for (size_t step : subject.StepsOf(dot))
      us += subject.Claim(step, subject.report().steps[step].us() - gather_us);
  subject.Add({.rule = "lint.one-hot-matmul",
               .lines = LintLinesOf({&dot}),
               .us = us,
               .text = fmt::format("a product with a one-hot matrix of {} elements selects rows: "
                                   "table[indices] or jnp.take(table, indices, axis=0)",
                                   one_hot.shape().ElementCount()),
               .fix = {.kind = "take", .text = "jnp.take(table, indices, axis=0)"}});
}

bool HasStaticShapes(const Instr& instr) {
  return instr.shape().IsStaticArray() &&
         std::ranges::all_of(instr.operands(),
                             [](const Instr* operand) { return operand->shape().IsStaticArray(); });
}

}  // namespace

void LintIndexing(LintSubject& subject) {
  if (!subject.has_written()) return;
  for (const auto& computation : subject.folded().computations())
    for (const Instr* instr : computation->Instrs()) {
      if (instr->op() == Op::kGather && HasStaticShapes(*instr)) LookAtGather(subject, *instr);
      if (instr->op() == Op::kScatter && HasStaticShapes(*instr)) LookAtScatter(subject, *instr);
    }
  for (const auto& computation : subject.written().computations())
    for (const Instr* instr : computation->Instrs())
      if (instr->op() == Op::kDot && HasStaticShapes(*instr))
        LookAtProductOfOneHot(subject, *instr);
}

}  // namespace tokamak
