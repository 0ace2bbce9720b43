#include <limits>
#include <unordered_map>

#include "gen/region.h"
#include "gen/sort_schedule.h"
#include "ir/builder.h"
#include "passes/passes.h"
#include "passes/target/first_elements.h"
#include "passes/target/merge_sorts.h"
#include "passes/target/packed_key_sorts.h"
#include "passes/target/top_k.h"
#include "rewrite/edit_computations.h"
#include "rewrite/editor.h"
#include "support/check.h"

namespace tokamak {
namespace {

// ---- computed keys

// Whether the value that a comparison computes from one element can be computed for a whole array.
bool IsElementwise(const Instr& value) {
  std::vector<const Instr*> open = {&value};
  std::unordered_map<const Instr*, bool> seen;
  while (!open.empty()) {
    const Instr* instr = open.back();
    open.pop_back();
    if (!seen.emplace(instr, true).second) continue;
    bool known =
        instr->op() == Op::kParameter || instr->op() == Op::kConstant ||
        (instr->info().Is(kElementwise) && instr->called().empty() && instr->operand_count() > 0);
    if (!known || !IsPlainArray(instr->shape()) || instr->shape().rank() != 0) return false;
    for (const Instr* operand : instr->operands()) open.push_back(operand);
  }
  return true;
}

// Rewrites sorts by computed keys: the keys become the first operands of the sort, followed by the
// original operands, whose results are used.
class KeyRewriter {
 public:
  KeyRewriter(Instr& sort, std::vector<ComparedKey> keys)
      : sort_(sort), make_(sort), keys_(std::move(keys)) {}

  void Run() {
    std::vector<Instr*> operands;
    for (const ComparedKey& key : keys_) operands.push_back(Array(key.value));
    std::vector<Shape> shapes;
    for (Instr* operand : sort_.operands()) operands.push_back(operand);
    for (const Instr* operand : operands) shapes.push_back(Plain(operand->shape()));
    Instr* sorted = make_.Make(Op::kSort, Shape::Tuple(shapes), operands, sort_.attrs());
    sorted->set_called({Less(operands)});
    std::vector<Instr*> results;
    for (size_t k = 0; k < sort_.operand_count(); ++k) {
      size_t part = keys_.size() + k;
      results.push_back(make_.Make(Op::kGetTupleElement, shapes[part], {sorted},
                                   TupleIndexAttrs{static_cast<int64_t>(part)}));
    }
    Instr* value =
        sort_.shape().IsTuple() ? make_.Make(Op::kTuple, sort_.shape(), results, {}) : results[0];
    make_.Replace(value);
  }

 private:
  static Shape Plain(const Shape& shape) { return Shape::Array(shape.type(), shape.dims()); }

  Instr* Array(const Instr* value) {
    auto known = arrays_.find(value);
    if (known != arrays_.end()) return known->second;
    Shape shape = Shape::Array(value->shape().type(), sort_.operand(0)->shape().dims());
    Instr* made = nullptr;
    if (value->op() == Op::kParameter) {
      made = sort_.operand(static_cast<size_t>(value->attrs<ParameterAttrs>().number / 2));
    } else if (value->op() == Op::kConstant) {
      made = make_.Make(Op::kConstant, value->shape(), {}, value->attrs());
      made = make_.Make(Op::kBroadcast, shape, {made}, DimensionsAttrs{});
    } else {
      std::vector<Instr*> operands;
      for (const Instr* operand : value->operands()) operands.push_back(Array(operand));
      made = make_.Make(value->op(), shape, std::move(operands), value->attrs());
    }
    arrays_.emplace(value, made);
    return made;
  }

  // Compares the keys lexicographically.
  Computation* Less(const std::vector<Instr*>& operands) {
    Builder b(sort_, "by_keys");
    std::vector<Instr*> parameters;
    for (const Instr* operand : operands)
      for (int side = 0; side < 2; ++side)
        parameters.push_back(b.Parameter(Shape::Scalar(operand->shape().type())));
    Instr* less = nullptr;
    for (size_t k = keys_.size(); k-- > 0;) {
      Instr *x = NormalizedKey(b, parameters[2 * k], k),
            *y = NormalizedKey(b, parameters[2 * k + 1], k);
      bool plain = keys_[k].order == SortOrder::kFloatIeee || !IsReal(x->shape().type());
      CompareType type = plain ? CompareType::kNone : CompareType::kTotalOrder;
      auto compare = [&](CompareDirection direction) {
        return b.Append(Op::kCompare, {x, y}, CompareAttrs{direction, type});
      };
      Instr* own = compare(keys_[k].is_descending ? CompareDirection::kGt : CompareDirection::kLt);
      less = less == nullptr ? own : b.Or(own, b.And(compare(CompareDirection::kEq), less));
    }
    return b.FinishValid(less);
  }

  Instr* NormalizedKey(Builder& b, Instr* x, size_t k) {
    if (keys_[k].order != SortOrder::kFloatNanLast) return x;
    ElementType type = x->shape().type();
    Instr* zero = b.Scalar(type, 0);
    Instr* nan = b.Scalar(type, std::numeric_limits<double>::quiet_NaN());
    Instr* number = b.Select(b.Compare(x, zero, CompareDirection::kEq), zero, x);
    return b.Select(b.Compare(x, x, CompareDirection::kNe), nan, number);
  }

  Instr& sort_;
  Editor make_;
  std::vector<ComparedKey> keys_;
  std::unordered_map<const Instr*, Instr*> arrays_;
};

bool TryPrepare(Instr& sort, PassContext& context) {
  if (!HasPlainOperands(sort) || HasControlDependencies(sort) || KeysOf(sort)) return false;
  std::optional<std::vector<ComparedKey>> keys = ComparedKeysOf(*sort.called(0));
  if (!keys) return false;
  for (const ComparedKey& key : *keys)
    if (!IsElementwise(*key.value)) return false;
  context.Accepted("sort.computed-keys", sort, nullptr, std::to_string(keys->size()) + " keys");
  KeyRewriter(sort, std::move(*keys)).Run();
  return true;
}

// Forwards elements of tuple ops to their uses, because kernels end at tuples.
void ForwardParts(Computation& computation) {
  for (Instr* part : computation.PostOrder()) {
    if (part->op() != Op::kGetTupleElement || part->operand(0)->op() != Op::kTuple) continue;
    auto index = static_cast<size_t>(part->attrs<TupleIndexAttrs>().index);
    if (computation.root() == part) continue;
    computation.ReplaceUses(part, part->operand(0)->operand(index));
    computation.Remove(part);
  }
}

// Rewrites a sort whose cheapest schedule is not one kernel.
bool TryRewriteForGpu(Instr& sort, PassContext& context) {
  const Machine& machine = context.machine();
  if (HasControlDependencies(sort)) return false;
  std::vector<SortSchedule> schedules = SortSchedules(sort, machine);
  if (schedules.empty()) return false;
  SortSize size = SizeOf(sort);
  SortSchedule schedule = CheapestOf(schedules, size, machine);
  if (schedule.packs_keys) {
    PackedKeySort(sort, schedule, context);
  } else if (schedule.method == SortMethod::kMerge && schedule.tile < size.length) {
    MergeSort(sort, schedule, context);
  } else {
    return false;
  }
  return true;
}

// Applies a rewrite to the instructions of an op, also to those that it creates.
template <typename Rewrite>
bool RewriteAll(Computation& computation, Op op, Rewrite&& rewrite) {
  bool changed = false, changed_now = true;
  while (changed_now) {
    changed_now = false;
    for (Instr* instr : computation.PostOrder())
      if (instr->op() == op && rewrite(*instr)) changed_now = true;
    changed = changed || changed_now;
  }
  return changed;
}

bool PrepareForGpu(Computation& computation, PassContext& context) {
  auto each = [&](Op op, bool (*rewrite)(Instr&, PassContext&)) {
    return RewriteAll(computation, op, [&](Instr& instr) { return rewrite(instr, context); });
  };
  bool changed = each(Op::kSort, TryTopK);
  changed = each(Op::kTopK, TryLowerTopK) || changed;
  changed = each(Op::kSort, TryRewriteForGpu) || changed;
  if (changed) ForwardParts(computation);
  return changed;
}

}  // namespace

// Sorts by computed keys become sorts by arrays of keys, computed in separate kernels; sorts become
// top-k if only their first elements are used. On GPUs, top-k become reductions or sorts (top_k.h),
// and sorts whose schedule is not one kernel are rewritten (packed_key_sorts.h, merge_sorts.h).
Result<Changed> LegalizeSorts(Module& module, PassContext& context) {
  return EditComputations(module, [&](Computation& computation) {
    bool changed = false;
    for (Instr* instr : computation.PostOrder())
      if (instr->op() == Op::kCustomCall && TryApproxTopK(*instr, context)) changed = true;
    if (context.machine().is_gpu()) return PrepareForGpu(computation, context) || changed;
    for (Instr* instr : computation.PostOrder())
      if (instr->op() == Op::kSort && (TryTopK(*instr, context) || TryPrepare(*instr, context)))
        changed = true;
    return changed;
  });
}

}  // namespace tokamak
