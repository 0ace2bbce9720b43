// Finds the parallel axes of a loop from dimension classes (dim_links.h): dimensions that an op
// reads and writes at the same index are one class. If an op combines elements at different indices
// along a dimension (slices, concatenations, reductions, contractions), its class is mixed.
// Iterations are independent along a class that is not mixed.
//
// Values that do not depend on such an array (PRNG keys, counters, invariants, random draws) can be
// computed at any point and link nothing. Which carried values are of this kind is found by
// iteration: the smallest carried value whose dimensions are all mixed is assumed to be one, and
// the classes are computed again without it.
//
// Each class then becomes an axis, and classes of equal size that no value combines share one. The
// points of the loop are the index tuples of the axes. At most one analysis per carried array.

#include "analysis/independent.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analysis/dim_links.h"
#include "analysis/own_condition.h"

namespace tokamak {
namespace {

// Elements of a carried value that every point may recompute or keep. Chosen.
constexpr int64_t kMaxUniformElements = 64;
// Elements of all carried values of a single point, distributed over the threads of a cluster.
// Chosen: 16 blocks of 1024 threads have more, but the weights of as many need larger clusters.
constexpr int64_t kMaxPointElements = 4096;
// A dimension of at most this size that not all carried values have is not parallelized: each point
// keeps all of it. Chosen.
constexpr int64_t kShort = 8;

class IndependentDimsFinder {
 public:
  explicit IndependentDimsFinder(const WhileLoop& loop) { loops_.push_back({loop, {}}); }

  LoopIndependence Find() {
    if (std::string why = BeginAll(); !why.empty()) return No(why);
    for (;;) {
      DimLinks links(loops_[0].loop, moves_);
      if (!Demote(links)) return Choose(links);
    }
  }

  LoopIndependence FindOnePoint() {
    if (std::string why = BeginAll(); !why.empty()) return No(why);
    if (loops_.size() > 1) return No("it contains a loop");
    int64_t held = 0;
    for (size_t i = 0; i < loops_[0].forms.size(); ++i) {
      CarryForm& form = loops_[0].forms[i];
      form.is_of_point = moves_.contains(loops_[0].loop.in_body(i));
      if (form.kind == CarryKind::kHeld) held += loops_[0].loop.init(i)->shape().ElementCount();
    }
    if (held > kMaxPointElements) return No("its single point has too many elements");
    DimLinks links(loops_[0].loop, moves_);
    AddDots(links, *loops_[0].loop.body);
    if (found_.dots.empty()) return No("its elements do not depend on each other through dots");
    return Result();
  }

 private:
  // The loop or a nested one.
  struct Own {
    WhileLoop loop;
    std::vector<CarryForm> forms;
  };

  bool AddInner(const Computation& computation) {
    for (Instr* instr : computation.Callers()) {
      if (!RunsComputations(instr->op())) continue;
      if (instr->op() == Op::kWhile) {
        std::optional<WhileLoop> inner = LoopOf(instr);
        if (!inner) return false;
        loops_.push_back({*inner, {}});
      }
      for (const Computation* called : instr->called())
        if (!AddInner(*called)) return false;
    }
    return true;
  }

  std::string BeginAll() {
    if (!AddInner(*loops_[0].loop.body)) return "it contains a loop that carries tuples";
    for (Own& own : loops_)
      if (std::string why = Begin(own); !why.empty()) return why;
    return "";
  }

  std::string Begin(Own& own) {
    own.forms.resize(own.loop.size());
    for (size_t i = 0; i < own.loop.size(); ++i) {
      const Shape& shape = own.loop.init(i)->shape();
      if (!shape.IsStaticArray()) return "it carries a value that is not a static array";
      if (shape.ElementCount() == 0) return "it carries an empty array";
      CarryForm& form = own.forms[i];
      form.axes.assign(shape.dims().size(), -1);
      if (own.loop.IsInvariant(i))
        form.kind = CarryKind::kInvariant;
      else if (&own == &loops_[0] && !UpdatesOf(own.loop, i).empty())
        form.kind = CarryKind::kStacked;
      if (form.kind != CarryKind::kInvariant && shape.ElementCount() > 1)
        moves_.insert(own.loop.in_body(i));
    }
    return "";
  }

  LoopIndependence No(std::string why) {
    found_.why_not = std::move(why);
    return found_;
  }

  static bool HasAxis(DimLinks& links, const Instr& parameter) {
    const Shape& shape = parameter.shape();
    for (size_t d = 0; d < shape.dims().size(); ++d)
      if (shape.dim(d) > 1 && !links.IsMixed(parameter, d)) return true;
    return false;
  }

  // Removes the smallest arrays without an axis from moves_ and returns whether there were any. The
  // smallest first: its links may be all that mixes the dimensions of larger ones.
  bool Demote(DimLinks& links) {
    int64_t least = INT64_MAX;
    for (const Instr* parameter : moves_)
      if (!HasAxis(links, *parameter)) least = std::min(least, parameter->shape().ElementCount());
    return std::erase_if(moves_, [&](const Instr* parameter) {
             if (parameter->shape().ElementCount() != least || HasAxis(links, *parameter))
               return false;
             linked_by_[parameter] = ByWhom(links, *parameter);
             return true;
           }) > 0;
  }

  // Rejects loops in which a large array has no axis, and values that one point would need from all
  // others; otherwise chooses the axes.
  LoopIndependence Choose(DimLinks& links) {
    for (const Own& own : loops_) {
      for (size_t i = 0; i < own.loop.size(); ++i) {
        const Instr& parameter = *own.loop.in_body(i);
        if (own.forms[i].kind == CarryKind::kInvariant || moves_.contains(&parameter)) continue;
        bool small = parameter.shape().ElementCount() <= kMaxUniformElements;
        if (!small && own.forms[i].kind != CarryKind::kStacked)
          return No(LabelOf(parameter) + ": its elements depend on each other" +
                    linked_by_[&parameter]);
        // A value that is reduced over all points is available at none of them.
        if (&own == &loops_[0] && links.Depends(*own.loop.next(i)))
          return NoneOrOne(LabelOf(parameter));
      }
    }
    bool by_point = links.Depends(*loops_[0].loop.condition->root());
    if (by_point && OwnCondition(loops_[0].loop) == nullptr) return NoneOrOne("its condition");
    ChooseAxes(links);
    if (by_point && !ConditionOfPoint(loops_[0].loop, found_.sizes)) {
      found_.sizes.clear();
      for (Own& own : loops_)
        for (CarryForm& form : own.forms) std::ranges::fill(form.axes, -1);
      return NoneOrOne("its condition");
    }
    AddDots(links, *loops_[0].loop.body);
    return Result();
  }

  void AddDots(DimLinks& links, const Computation& computation) {
    for (const Instr* instr : computation.PostOrder()) {
      if (RunsComputations(instr->op()))
        for (const Computation* called : instr->called()) AddDots(links, *called);
      if (instr->op() != Op::kDot || !links.Depends(*instr)) continue;
      std::vector<int>& axes = found_.dots[instr];
      for (size_t d = 0; d < instr->shape().dims().size(); ++d) {
        auto axis = axes_.find(links.ClassOf(*instr, d));
        axes.push_back(axis == axes_.end() ? -1 : axis->second);
      }
    }
  }

  LoopIndependence Result() {
    found_.carries = loops_[0].forms;
    for (size_t k = 1; k < loops_.size(); ++k)
      found_.inner.emplace(loops_[k].loop.instr, loops_[k].forms);
    return found_;
  }

  // A single point that has all elements, if they are few; else failure.
  LoopIndependence NoneOrOne(const std::string& what) {
    int64_t held = 0;
    for (const Own& own : loops_)
      for (size_t i = 0; i < own.loop.size(); ++i)
        if (own.forms[i].kind == CarryKind::kHeld) held += own.loop.init(i)->shape().ElementCount();
    if (held <= kMaxUniformElements) return Result();
    return No(what + ": depends on elements of all points");
  }

  // The instruction that mixes its longest dimension, for the message.
  static std::string ByWhom(DimLinks& links, const Instr& parameter) {
    const Dims& dims = parameter.shape().dims();
    auto longest = static_cast<size_t>(std::ranges::max_element(dims) - dims.begin());
    const Instr* by = links.MixedBy(parameter, longest);
    if (by == nullptr || by->op() == Op::kParameter) return "";
    return " (" + std::string(by->info().name) + (by->name().empty() ? "" : " " + by->name()) + ")";
  }

  static std::string LabelOf(const Instr& parameter) {
    return parameter.name().empty()
               ? "value " + std::to_string(parameter.attrs<ParameterAttrs>().number)
               : parameter.name();
  }

  struct Class {
    int64_t size = 0;
    size_t values = 0;  // carried values that have a dimension of the class
    int axis = -1;
  };

  // Calls visit(form, dimension, class, size) for all dimensions that may become axes.
  template <typename Visit>
  void ForDims(DimLinks& links, Visit&& visit) {
    for (Own& own : loops_) {
      for (size_t i = 0; i < own.loop.size(); ++i) {
        const Instr& parameter = *own.loop.in_body(i);
        if (!moves_.contains(&parameter)) continue;
        const Shape& shape = parameter.shape();
        for (size_t d = 0; d < shape.dims().size(); ++d)
          if (shape.dim(d) > 1 && !links.IsMixed(parameter, d))
            visit(own.forms[i], d, links.ClassOf(parameter, d), shape.dim(d));
      }
    }
  }

  // A short class that only some values have stays inside the points, so that a point is not split
  // into a few elements.
  void ChooseAxes(DimLinks& links) {
    std::map<size_t, Class> classes;
    std::vector<size_t> order;  // by first occurrence: outer dimensions first
    int64_t longest = 0;
    ForDims(links, [&](const CarryForm&, size_t, size_t number, int64_t size) {
      Class& c = classes[number];
      if (c.size == 0) order.push_back(number);
      c.size = size;
      ++c.values;
      longest = std::max(longest, size);
    });
    for (size_t number : order) {
      Class& c = classes[number];
      if (c.values < moves_.size() && c.size <= kShort && c.size < longest) continue;
      // Classes that no value combines may share one axis.
      for (size_t a = 0; a < found_.sizes.size() && c.axis < 0; ++a)
        if (found_.sizes[a] == c.size && !LinksToAxis(links, number, static_cast<int>(a)))
          c.axis = static_cast<int>(a);
      if (c.axis < 0) {
        c.axis = static_cast<int>(found_.sizes.size());
        found_.sizes.push_back(c.size);
      }
      ForDims(links, [&](CarryForm& form, size_t d, size_t other, int64_t) {
        if (other == number) form.axes[d] = c.axis;
      });
      axes_.emplace(number, c.axis);
    }
  }

  // Whether a value has both a dimension of the class and one along the axis.
  bool LinksToAxis(DimLinks& links, size_t number, int axis) {
    bool linked = false;
    ForDims(links, [&](const CarryForm& form, size_t, size_t other, int64_t) {
      if (other == number && std::ranges::find(form.axes, axis) != form.axes.end()) linked = true;
    });
    return linked;
  }

  std::vector<Own> loops_;  // the loop, then nested loops
  LoopIndependence found_;
  std::map<size_t, int> axes_;                     // axis of each class
  std::set<const Instr*> moves_;                   // arrays that are distributed over points
  std::map<const Instr*, std::string> linked_by_;  // of other arrays: what mixes them
};

}  // namespace

LoopIndependence FindIndependence(const WhileLoop& loop) {
  LoopIndependence found = IndependentDimsFinder(loop).Find();
  if (found.why_not.empty()) return found;
  LoopIndependence one = FindOnePoint(loop);
  return one.why_not.empty() ? one : found;
}

LoopIndependence FindOnePoint(const WhileLoop& loop) {
  return IndependentDimsFinder(loop).FindOnePoint();
}

// A stacked output has no other readers: each update in the chain has one user, and neither body
// nor condition reads the old value.
std::vector<const Instr*> UpdatesOf(const WhileLoop& loop, size_t carry) {
  std::vector<const Instr*> updates;
  const Instr* value = loop.next(carry);
  size_t root_users = loop.size() == 1 ? 0 : 1;
  if (value->users().size() != root_users) return {};
  while (value->op() == Op::kDynamicUpdateSlice) {
    updates.push_back(value);
    value = value->operand(0);
    if (value->users().size() != 1) return {};
  }
  // The condition must not read it.
  if (value != loop.in_body(carry) || !loop.in_condition(carry)->users().empty()) return {};
  std::reverse(updates.begin(), updates.end());
  return updates;
}

}  // namespace tokamak
