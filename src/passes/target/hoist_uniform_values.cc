// In a whole-loop kernel each point (thread or lane) runs all iterations, so a carried value that
// is the same at all points is recomputed by every point. PRNG keys that each iteration splits are
// such values and expensive. This pass computes them once, in a loop that precedes the original one
// and stacks one row per iteration:
//
//   while (i, key, x):                      while (i, key, rows):
//     key' = split(key)                       key' = split(key); rows[i] = u(key)
//     x'   = f(x, u(key))           ->      while (i, x, rows):
//                                             x' = f(x, rows[i])
//
// Terms: a key is a carried value without a parallel axis that changes; the uniform inputs are
// values computed from keys that the rest of the body reads. The body is classified in one forward
// pass: kFree values depend on the counter and invariants only, kKeyed values also on keys, kOther
// values on the point. The first loop has one point and is sequential, so the cost model decides:
// parallel recomputation against serial latency.

#include <algorithm>
#include <map>
#include <set>

#include "cost/rates.h"
#include "cost/units.h"
#include "cost/work.h"
#include "gen/generator.h"
#include "passes/passes.h"
#include "rewrite/bodies.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

// kMostElements: elements of one hoisted value. kMaxUniformInputs: elements per iteration of all
// values passed to the loop. Chosen: the loop loads them in each iteration instead of computing
// them. kUniformMaxTrips: trip count. Chosen: it bounds the memory for the values to 128 MiB of
// f32.
constexpr int64_t kMostElements = 64, kMaxUniformInputs = 32;
constexpr int64_t kUniformMaxTrips = int64_t{1} << 20;

class Sharer {
 public:
  Sharer(Module& module, Instr* instr)
      : module_(module),
        instr_(instr),
        region_(WholeLoopRegionOf(*instr)),
        body_(instr->called(1)) {}

  // Whether there is something to hoist; `micros`: estimated microseconds before and after.
  bool Find(const Machine& machine, std::pair<double, double>& micros) {
    if (!region_.independence.why_not.empty() || !region_.trip_count ||
        *region_.trip_count > kUniformMaxTrips)
      return false;
    if (instr_->parent()->root() == instr_ || !IsOwn(*body_) || !FindCounter()) return false;
    for (const Instr* user : instr_->users())
      if (user->op() != Op::kGetTupleElement) return false;
    for (const Instr* caller : body_->Callers())
      if (RunsComputations(caller->op())) return false;
    for (size_t i = 0; i < loop().size(); ++i) {
      const CarryForm& form = region_.independence.carries[i];
      if (form.kind == CarryKind::kHeld && form.IsUniform() && i != counter_) keys_.push_back(i);
    }
    if (keys_.empty()) return false;
    Classify();
    return FindUniformInputs() && Pays(machine, micros);
  }

  // Returns the body of the loop that computes the rows.
  const Computation* Run() {
    MakeRows();
    const Computation* made = rows_->called(1);
    AddCarries(*CallCounts(module_).Own(instr_, 0), *body_);
    return made;
  }

 private:
  // kFree: independent of keys and of the point. kKeyed: depends on keys only.
  enum class Kind : uint8_t { kFree, kKeyed, kOther };

  const WhileLoop& loop() const { return region_.loop; }

  // The computation has no other caller.
  bool IsOwn(const Computation& computation) const {
    size_t callers = 0;
    for (const auto& other : module_.computations())
      for (const Instr* caller : other->Callers())
        for (const Computation* called : caller->called()) callers += called == &computation;
    return callers == 1;
  }

  bool FindCounter() {
    for (size_t i = 0; i < loop().size(); ++i) {
      std::optional<Induction> found = InductionOf(loop(), i);
      if (!found || !found->start || found->step != 1 || InfoOf(found->type).bits < 32) continue;
      if (*found->start < 0 || *found->start + *region_.trip_count > INT32_MAX) continue;
      counter_ = i;
      start_ = *found->start;
      return true;
    }
    return false;
  }

  Kind KindOf(const Instr* instr) const {
    auto it = kinds_.find(instr);
    return it == kinds_.end() ? Kind::kOther : it->second;
  }

  // A keyed value that is large, complex or calls a computation counts as kOther, because the row
  // loop could not hold it.
  void Classify() {
    for (size_t i = 0; i < loop().size(); ++i) {
      bool is_key = std::ranges::find(keys_, i) != keys_.end();
      bool invariant = region_.independence.carries[i].kind == CarryKind::kInvariant;
      kinds_[loop().in_body(i)] = is_key                       ? Kind::kKeyed
                                  : invariant || i == counter_ ? Kind::kFree
                                                               : Kind::kOther;
    }
    for (const Instr* instr : body_->PostOrder()) {
      if (instr->op() == Op::kParameter) continue;
      Kind kind = Kind::kFree;
      for (const Instr* operand : instr->operands()) {
        Kind own = KindOf(operand);
        if (own == Kind::kOther || kind == Kind::kOther)
          kind = Kind::kOther;
        else if (own == Kind::kKeyed)
          kind = Kind::kKeyed;
      }
      bool fits = instr->shape().IsArray() && instr->shape().ElementCount() <= kMostElements &&
                  instr->called().empty() && !IsComplex(instr->shape().type());
      kinds_[instr] = kind == Kind::kKeyed && !fits ? Kind::kOther : kind;
    }
  }

  // Hoisted values that the rest of the body uses.
  bool FindUniformInputs() {
    for (size_t key : keys_)
      if (KindOf(loop().next(key)) != Kind::kKeyed) return false;
    int64_t elements = 0;
    for (const Instr* instr : body_->PostOrder()) {
      if (KindOf(instr) != Kind::kKeyed) continue;
      bool given = std::ranges::any_of(instr->users(), [&](const Instr* user) {
        return user != body_->root() && KindOf(user) == Kind::kOther;
      });
      if (!given) continue;
      uniform_inputs_.push_back(instr);
      elements += instr->shape().ElementCount();
    }
    // All values that the keys depend on must be small as well.
    for (const Instr* instr : Needed())
      if (instr->op() != Op::kParameter && instr->shape().ElementCount() > kMostElements)
        return false;
    return !uniform_inputs_.empty() && elements <= kMaxUniformInputs;
  }

  // Instructions of the body that compute the next keys and the uniform inputs; operands first.
  std::vector<const Instr*> Needed() const {
    std::vector<const Instr*> open = uniform_inputs_;
    for (size_t key : keys_) open.push_back(loop().next(key));
    std::map<const Instr*, bool> live;
    while (!open.empty()) {
      const Instr* instr = open.back();
      open.pop_back();
      if (!live.emplace(instr, true).second) continue;
      for (const Instr* operand : instr->operands()) open.push_back(operand);
    }
    std::vector<const Instr*> needed;
    for (const Instr* instr : body_->PostOrder())
      if (live.contains(instr)) needed.push_back(instr);
    return needed;
  }

  // Compares recomputing the values at all points in parallel with computing them once,
  // sequentially.
  bool Pays(const Machine& machine, std::pair<double, double>& micros) const {
    const Rates& rates = RatesOf(machine);
    Work work;
    double operations = 0;
    for (const Instr* instr : Needed()) {
      if (instr->op() == Op::kParameter) continue;
      auto elements = static_cast<double>(instr->shape().ElementCount());
      // On a CPU each element is a scalar op, not one lane of a vector.
      if (!machine.is_gpu()) elements *= static_cast<double>(machine.Lanes(32));
      AddElementOp(work, *instr, elements, machine);
      operations = std::max(operations, static_cast<double>(instr->info().flops_per_element));
    }
    double once = NsOfOps(work, rates);
    auto trip_count = static_cast<double>(*region_.trip_count);
    auto points = static_cast<double>(region_.independence.Points());
    double at_a_time = machine.is_gpu() ? 1 : static_cast<double>(2 * machine.Lanes(32));
    double cores = static_cast<double>(std::max<int64_t>(machine.cores, 1));
    micros.first = trip_count * once * points / at_a_time / cores / kNsPerUs;
    // An additional launch, and a dependent chain of the longest op of each iteration.
    micros.second = 2 * EstimateCost(Work{}, machine).launch +
                    trip_count * std::max(once, operations * rates.latency_ns) / kNsPerUs;
    return micros.first > 2 * micros.second;
  }

  static Instr* Number(Computation& of, ElementType type, int64_t value) {
    return of.Append(Op::kConstant, Shape::Scalar(type), {},
                     ConstantAttrs{Literal::ScalarInt(type, value)});
  }
  Instr* RowOf(Computation& of, Instr* counter) const {
    ElementType type = counter->shape().type();
    if (start_ == 0) return counter;
    return of.Append(Op::kSubtract, counter->shape(), {counter, Number(of, type, start_)});
  }

  // Values of one type form one row.
  std::map<ElementType, std::vector<const Instr*>> Rows() const {
    std::map<ElementType, std::vector<const Instr*>> rows;
    for (const Instr* value : uniform_inputs_) rows[value->shape().type()].push_back(value);
    return rows;
  }
  static int64_t Width(const std::vector<const Instr*>& values) {
    int64_t width = 0;
    for (const Instr* value : values) width += value->shape().ElementCount();
    return width;
  }

  // The preceding loop carries the counter, keys, required loop-invariant values and stacked rows.
  void MakeRows() {
    Computation& before = *instr_->parent();
    Computation &condition = *module_.AddComputation("keys_more"),
                &body = *module_.AddComputation("keys");
    condition.is_public = body.is_public = false;
    std::vector<size_t> carried = {counter_};
    carried.insert(carried.end(), keys_.begin(), keys_.end());
    for (const Instr* instr : Needed())
      if (instr->op() == Op::kParameter && KindOf(instr) == Kind::kFree &&
          instr != loop().in_body(counter_))
        carried.push_back(static_cast<size_t>(instr->attrs<ParameterAttrs>().number));
    std::vector<Shape> shapes;
    std::vector<Instr*> first, next;
    std::map<const Instr*, Instr*> copies;
    auto add = [&](Instr* value) {
      auto number = static_cast<int64_t>(shapes.size());
      first.push_back(value);
      shapes.push_back(value->shape());
      condition.AppendParameter(number, value->shape());
      return body.AppendParameter(number, value->shape());
    };
    for (size_t i : carried) copies[loop().in_body(i)] = add(loop().init(i));
    for (const Instr* instr : Needed()) {
      if (instr->op() == Op::kParameter) continue;
      std::vector<Instr*> operands;
      for (const Instr* operand : instr->operands()) operands.push_back(copies.at(operand));
      copies[instr] = CopyTo(body, *instr, std::move(operands));
    }
    Instr* counter = copies.at(loop().in_body(counter_));
    ElementType type = counter->shape().type();
    next.push_back(body.Append(Op::kAdd, counter->shape(), {counter, Number(body, type, 1)}));
    for (size_t key : keys_) next.push_back(copies.at(loop().next(key)));
    for (size_t i = 1 + keys_.size(); i < carried.size(); ++i)
      next.push_back(copies.at(loop().in_body(carried[i])));
    for (const auto& [element, values] : Rows()) {
      Shape stack = Shape::Array(element, {*region_.trip_count, Width(values)});
      Instr* zero = before.Append(Op::kConstant, Shape::Scalar(element), {},
                                  ConstantAttrs{Literal::Scalar(element, 0)});
      Instr* parameter = add(before.Append(Op::kBroadcast, stack, {zero}, DimensionsAttrs{Dims{}}));
      std::vector<Instr*> flat;
      for (const Instr* value : values)
        flat.push_back(body.Append(Op::kReshape,
                                   Shape::Array(element, {1, value->shape().ElementCount()}),
                                   {copies.at(value)}));
      Instr* row = flat[0];
      if (flat.size() > 1)
        row = body.Append(Op::kConcatenate, Shape::Array(element, {1, Width(values)}), flat,
                          DimensionAttrs{1});
      next.push_back(body.Append(Op::kDynamicUpdateSlice, stack,
                                 {parameter, row, RowOf(body, counter), Number(body, type, 0)}));
    }
    body.set_root(body.Append(Op::kTuple, Shape::Tuple(shapes), next));
    condition.set_root(condition.Append(
        Op::kCompare, Shape::Scalar(ElementType::kPred),
        {condition.parameter(0), Number(condition, type, start_ + *region_.trip_count)},
        CompareAttrs{CompareDirection::kLt, CompareType::kNone}));
    rows_ = before.Append(Op::kWhile, Shape::Tuple(shapes), first, {}, "keys");
    rows_->set_called({&condition, &body});
    rows_->set_origins(instr_->origins());
    first_stack_ = carried.size();
  }

  Instr* PartOf(Instr* tuple, size_t i) const {
    return instr_->parent()->Append(Op::kGetTupleElement, tuple->shape().elements()[i], {tuple},
                                    TupleIndexAttrs{static_cast<int64_t>(i)});
  }

  // The loop takes rows and no longer carries keys.
  void AddCarries(Computation& condition, Computation& body) {
    std::vector<Instr*> operands(instr_->operands().begin(), instr_->operands().end());
    std::vector<Instr*> next(body.root()->operands().begin(), body.root()->operands().end());
    std::vector<Shape> shapes = instr_->shape().elements();
    for (size_t key : keys_) next[key] = body.parameter(key);
    Instr* counter = body.parameter(counter_);
    size_t stack = first_stack_;
    for (const auto& [element, values] : Rows()) {
      Instr* rows = PartOf(rows_, stack++);
      auto number = static_cast<int64_t>(shapes.size());
      condition.AppendParameter(number, rows->shape());
      Instr* parameter = body.AppendParameter(number, rows->shape());
      operands.push_back(rows);
      next.push_back(parameter);
      shapes.push_back(rows->shape());
      int64_t width = Width(values), begin = 0;
      Instr* zero = Number(body, counter->shape().type(), 0);
      Instr* row =
          body.Append(Op::kDynamicSlice, Shape::Array(element, {1, width}),
                      {parameter, RowOf(body, counter), zero}, DynamicSliceAttrs{Dims{1, width}});
      for (const Instr* value : values) {
        int64_t count = value->shape().ElementCount();
        Instr* part = body.Append(Op::kSlice, Shape::Array(element, {1, count}), {row},
                                  SliceAttrs{{0, begin}, {1, begin + count}, {1, 1}});
        begin += count;
        Instr* given = body.Append(Op::kReshape, value->shape(), {part});
        std::vector<Instr*> users(value->users().begin(), value->users().end());
        for (Instr* user : users) {
          if (user == body.root() || KindOf(user) != Kind::kOther) continue;
          for (size_t i = 0; i < user->operand_count(); ++i)
            if (user->operand(i) == value) user->set_operand(i, given);
        }
      }
    }
    Instr* old = body.root();
    body.set_root(body.Append(Op::kTuple, Shape::Tuple(shapes), next));
    body.Remove(old);
    std::vector<Instr*> order = body.PostOrder();
    for (size_t i = order.size(); i-- > 0;)
      if (order[i]->users().empty() && order[i] != body.root() && order[i]->op() != Op::kParameter)
        body.Remove(order[i]);
    body.PutInOrder();
    Replace(condition, body, operands, shapes);
  }

  // Replaces the loop by one with the new carried values. Users of the final keys read them from
  // the row loop, which has computed the same sequence.
  void Replace(Computation& condition, Computation& body, const std::vector<Instr*>& operands,
               const std::vector<Shape>& shapes) {
    Computation& before = *instr_->parent();
    Instr* made = before.Append(Op::kWhile, Shape::Tuple(shapes), operands, {}, instr_->name());
    made->set_called({&condition, &body});
    made->set_origins(instr_->origins());
    made->set_pos(instr_->pos());
    std::vector<Instr*> users(instr_->users().begin(), instr_->users().end());
    for (Instr* user : users) {
      auto i = static_cast<size_t>(user->attrs<TupleIndexAttrs>().index);
      auto key = std::ranges::find(keys_, i);
      if (key == keys_.end())
        user->set_operand(0, made);
      else
        before.ReplaceUses(user, PartOf(rows_, 1 + static_cast<size_t>(key - keys_.begin())));
      if (key != keys_.end() && before.root() != user) before.Remove(user);
    }
    if (instr_->users().empty()) before.Remove(instr_);
    before.PutInOrder();
  }

  Module& module_;
  Instr* instr_;
  WholeLoopRegion region_;
  Computation* body_;
  size_t counter_ = 0, first_stack_ = 0;
  int64_t start_ = 0;
  std::vector<size_t> keys_;  // carried values that are uniform over all points
  std::map<const Instr*, Kind> kinds_;
  std::vector<const Instr*> uniform_inputs_;
  Instr* rows_ = nullptr;  // the loop that computes rows
};

// `made`: bodies of loops that compute rows. They are skipped, because everything in them would be
// hoisted again.
void HoistUniformIn(Module& module, Computation& computation, PassContext& context,
                    std::set<const Computation*>& made) {
  for (Instr* instr : computation.Callers()) {
    if (instr->is_removed()) continue;
    if (instr->op() == Op::kWhile && instr->operand_count() > 1 &&
        !made.contains(instr->called(1))) {
      Sharer sharer(module, instr);
      std::pair<double, double> micros;
      if (sharer.Find(context.machine(), micros)) {
        context.AcceptedByCost("loop.hoist-uniform", *instr, micros.first, micros.second,
                               "uniform values are computed once, before the loop");
        made.insert(sharer.Run());
        // Instructions have moved.
        return HoistUniformIn(module, computation, context, made);
      }
    }
    if (RunsComputations(instr->op()))
      for (Computation* called : instr->called()) HoistUniformIn(module, *called, context, made);
  }
}

}  // namespace

// Record loop.hoist-uniform, with the predicted microseconds of both variants.
Result<Changed> HoistUniformValues(Module& module, PassContext& context) {
  std::set<const Computation*> made;
  if (module.entry() != nullptr) HoistUniformIn(module, *module.entry(), context, made);
  return made.empty() ? Changed::kNo : Changed::kYes;
}

}  // namespace tokamak
