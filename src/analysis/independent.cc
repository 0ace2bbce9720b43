#include "analysis/independent.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analysis/dim_links.h"
#include "analysis/own_condition.h"

// Dimensions of the values of a body are put into classes: those that an op reads and writes at the
// same coordinate are one class. Where an op reads elements of a dimension at other coordinates
// (slices, concatenations, reductions, contractions), its class is mixed. A class that is not mixed
// is a dimension along which elements do not meet.
//
// Values that depend on no array of this kind (keys, counters, invariants, draws) can be computed
// at any place and link nothing: the smallest carried value whose dimensions are all mixed is taken
// for one of these, and the classes are made again.

namespace tokamak {
namespace {

// Elements of a carried value that every place may compute for itself.
constexpr int64_t kMostShared = 64;
// A dimension that not all values have is held by one place when it is so short.
constexpr int64_t kShort = 8;

class Finder {
 public:
  explicit Finder(const WhileLoop& loop) { loops_.push_back({loop, {}}); }

  IndependentLoop Find() {
    if (!AddInner(*loops_[0].loop.body)) return No("it holds a loop that carries tuples");
    for (Own& own : loops_)
      if (std::string why = Begin(own); !why.empty()) return No(why);
    for (;;) {
      DimLinks links(loops_[0].loop, moves_);
      if (!Demote(links)) return Choose(links);
    }
  }

 private:
  // The loop, or one within it.
  struct Own {
    WhileLoop loop;
    std::vector<CarryForm> forms;
  };

  bool AddInner(const Computation& computation) {
    for (Instr* instr : computation.Callers()) {
      bool is_loop = instr->op() == Op::kWhile;
      if (!is_loop && instr->op() != Op::kConditional && instr->op() != Op::kCall) continue;
      if (is_loop) {
        std::optional<WhileLoop> inner = LoopOf(instr);
        if (!inner) return false;
        loops_.push_back({*inner, {}});
      }
      for (const Computation* called : instr->called())
        if (!AddInner(*called)) return false;
    }
    return true;
  }

  std::string Begin(Own& own) {
    own.forms.resize(own.loop.size());
    for (size_t i = 0; i < own.loop.size(); ++i) {
      const Shape& shape = own.loop.init(i)->shape();
      if (!shape.IsArray() || shape.HasDynamicDims()) return "it carries what is no array";
      if (shape.ElementCount() == 0) return "it carries an array of no elements";
      CarryForm& form = own.forms[i];
      form.axes.assign(shape.dims().size(), -1);
      if (own.loop.IsInvariant(i))
        form.kind = CarryKind::kStays;
      else if (&own == &loops_[0] && !UpdatesOf(own.loop, i).empty())
        form.kind = CarryKind::kStacked;
      if (form.kind != CarryKind::kStays && shape.ElementCount() > 1)
        moves_.insert(own.loop.in_body(i));
    }
    return "";
  }

  IndependentLoop No(std::string why) {
    found_.why_not = std::move(why);
    return found_;
  }

  static bool HasAxis(DimLinks& links, const Instr& parameter) {
    const Shape& shape = parameter.shape();
    for (size_t d = 0; d < shape.dims().size(); ++d)
      if (shape.dim(d) > 1 && !links.IsMixed(parameter, d)) return true;
    return false;
  }

  // Whether some value turned out to be shared. The smallest first: what it links may be all that
  // mixes the dimensions of larger ones.
  bool Demote(DimLinks& links) {
    int64_t least = INT64_MAX;
    for (const Instr* parameter : moves_)
      if (!HasAxis(links, *parameter)) least = std::min(least, parameter->shape().ElementCount());
    return std::erase_if(moves_, [&](const Instr* parameter) {
             if (parameter->shape().ElementCount() != least || HasAxis(links, *parameter))
               return false;
             met_by_[parameter] = ByWhom(links, *parameter);
             return true;
           }) > 0;
  }

  IndependentLoop Choose(DimLinks& links) {
    for (const Own& own : loops_) {
      for (size_t i = 0; i < own.loop.size(); ++i) {
        const Instr& parameter = *own.loop.in_body(i);
        if (own.forms[i].kind == CarryKind::kStays || moves_.contains(&parameter)) continue;
        bool small = parameter.shape().ElementCount() <= kMostShared;
        if (!small && own.forms[i].kind != CarryKind::kStacked)
          return No(LabelOf(parameter) + ": its elements depend on each other" +
                    met_by_[&parameter]);
        // What is folded of all places is known to none of them.
        if (&own == &loops_[0] && links.Depends(*own.loop.next(i)))
          return NoneOrOne(LabelOf(parameter));
      }
    }
    bool by_place = links.Depends(*loops_[0].loop.condition->root());
    if (by_place && OwnCondition(loops_[0].loop) == nullptr) return NoneOrOne("its condition");
    ChooseAxes(links);
    if (by_place && !ConditionOfPlace(loops_[0].loop, found_.sizes)) {
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
      if (instr->op() == Op::kWhile || instr->op() == Op::kConditional || instr->op() == Op::kCall)
        for (const Computation* called : instr->called()) AddDots(links, *called);
      if (instr->op() != Op::kDot || !links.Depends(*instr)) continue;
      std::vector<int>& axes = found_.dots[instr];
      for (size_t d = 0; d < instr->shape().dims().size(); ++d) {
        auto axis = axes_.find(links.ClassOf(*instr, d));
        axes.push_back(axis == axes_.end() ? -1 : axis->second);
      }
    }
  }

  IndependentLoop Result() {
    found_.carries = loops_[0].forms;
    for (size_t k = 1; k < loops_.size(); ++k)
      found_.inner.emplace(loops_[k].loop.instr, loops_[k].forms);
    return found_;
  }

  // One place for all, when that is little.
  IndependentLoop NoneOrOne(const std::string& what) {
    int64_t held = 0;
    for (const Own& own : loops_)
      for (size_t i = 0; i < own.loop.size(); ++i)
        if (own.forms[i].kind == CarryKind::kHeld) held += own.loop.init(i)->shape().ElementCount();
    if (held <= kMostShared) return Result();
    return No(what + ": is made of elements of all places");
  }

  // What makes elements along its longest dimension meet.
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
    size_t values = 0;  // that have a dimension of it
    int axis = -1;
  };

  // Calls visit(form, dimension, class) for all dimensions that may be axes.
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

  void ChooseAxes(DimLinks& links) {
    std::map<size_t, Class> classes;
    std::vector<size_t> order;  // as met: outer dimensions first
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
      // Values that never meet may as well run along one axis.
      for (size_t a = 0; a < found_.sizes.size() && c.axis < 0; ++a)
        if (found_.sizes[a] == c.size && !MeetsAxis(links, number, static_cast<int>(a)))
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

  // Whether a value has a dimension of the class and one along the axis.
  bool MeetsAxis(DimLinks& links, size_t number, int axis) {
    bool meets = false;
    ForDims(links, [&](const CarryForm& form, size_t, size_t other, int64_t) {
      if (other == number && std::ranges::find(form.axes, axis) != form.axes.end()) meets = true;
    });
    return meets;
  }

  std::vector<Own> loops_;  // the loop, then those within it
  IndependentLoop found_;
  std::map<size_t, int> axes_;                  // of classes
  std::set<const Instr*> moves_;                // carried arrays that places may share out
  std::map<const Instr*, std::string> met_by_;  // of others: what makes their elements meet
};

}  // namespace

IndependentLoop FindIndependence(const WhileLoop& loop) {
  return Finder(loop).Find();
}

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
  // In the condition nobody looks at it.
  if (value != loop.in_body(carry) || !loop.in_condition(carry)->users().empty()) return {};
  std::reverse(updates.begin(), updates.end());
  return updates;
}

}  // namespace tokamak
