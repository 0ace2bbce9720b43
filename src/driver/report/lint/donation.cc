// lint.missing-donation: an argument is updated into a result of equal type and shape, and its
// memory is not reused.
//
// Whether the caller uses the argument again is not visible in a program. An argument counts as
// state that a call replaces if the result is it plus or minus something, or it with elements
// replaced, or what a loop that carries it ends with. This is a warning if the argument and the
// result have the same place in their trees ("params['w']" and "result['w']") or the elements are
// replaced in place, a note otherwise.

#include <algorithm>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "driver/report/lint/lint_subject.h"
#include "driver/report/write.h"

namespace tokamak {
namespace {

// Bytes of all arguments that could be donated below which no finding is made (chosen: less does
// not decide whether a program fits, and is allocated in microseconds).
constexpr int64_t kMinDonation = int64_t{1} << 20;
// Instructions followed from a result back to its argument (chosen: bounds the time; Adam's update
// has about 20).
constexpr size_t kMostFollowed = 256;
// Pairs of arguments and results of equal type that are compared (chosen: bounds the time).
constexpr int64_t kMostPairs = 8192;
constexpr size_t kShownArguments = 4;  // named in the text (chosen)

// kSum: plus or minus something, or carried by a loop. kInPlace: with elements replaced.
enum class Update { kNone, kSum, kInPlace };

// How a value comes from an argument of the same shape.
class UpdateFinder {
 public:
  explicit UpdateFinder(const Instr& argument) : argument_(argument) {}

  Update Of(const Instr& result) {
    if (&result == &argument_) return Update::kNone;
    Follow(result, false);
    return found_;
  }

 private:
  bool IsSame(const Instr& value) const {
    return value.shape().IsArray() && value.shape().dims() == argument_.shape().dims();
  }

  // `adds`: an addition, or a replacement of elements, is between the value and the result.
  void Follow(const Instr& value, bool adds) {
    if (&value == &argument_) {
      if (adds) found_ = std::max(found_, Update::kSum);
      return;
    }
    if (seen_.size() >= kMostFollowed || !seen_.insert(&value).second) return;
    switch (value.op()) {
      case Op::kAdd:
      case Op::kSubtract:
      case Op::kFma:
        for (const Instr* operand : value.operands())
          if (IsSame(*operand)) Follow(*operand, true);
        return;
      case Op::kDynamicUpdateSlice:
      case Op::kScatter:
        return FollowInPlace(*value.operand(0));
      case Op::kGetTupleElement:
        return FollowElement(value);
      case Op::kWhile:
        if (value.operand_count() == 1) Follow(*value.operand(0), true);
        return;
      default:
        break;
    }
    if (!value.info().Is(kElementwise)) return;
    for (const Instr* operand : value.operands())
      if (IsSame(*operand)) Follow(*operand, adds);
  }

  void FollowElement(const Instr& element) {
    const Instr& of = *element.operand(0);
    auto index = static_cast<size_t>(element.attrs<TupleIndexAttrs>().index);
    if (of.op() == Op::kWhile && of.operand_count() > 1) Follow(*of.operand(index), true);
    if (of.op() == Op::kScatter) FollowInPlace(*of.operand(index));
  }

  void FollowInPlace(const Instr& before) {
    if (&before == &argument_)
      found_ = Update::kInPlace;
    else
      Follow(before, true);
  }

  const Instr& argument_;
  Update found_ = Update::kNone;
  std::unordered_set<const Instr*> seen_;
};

// "params['w']", as the program names an argument; "argument 3" if it does not.
std::string NameOfArgument(const Instr& parameter) {
  for (const Origin* origin : parameter.parent()->module()->origins().Of(parameter.origins()))
    if (!origin->op_name.empty()) return origin->op_name;
  return fmt::format("argument {}", parameter.attrs<ParameterAttrs>().number);
}

// The place in the tree: "['w']" of "params['w']", ".mu" of "state[1].mu".
std::string_view PlaceOf(std::string_view name) {
  size_t begin = name.find_first_of(".[");
  return begin == std::string_view::npos ? "" : name.substr(begin);
}

std::string_view ResultName(const Computation& entry, size_t result) {
  if (result >= entry.results.size()) return "";
  const AttrValue* info = Find(entry.results[result].attributes, "jax.result_info");
  const std::string* text = info == nullptr ? nullptr : info->As<std::string>();
  return text == nullptr ? std::string_view() : *text;
}

class Donations {
 public:
  explicit Donations(LintSubject& subject)
      : subject_(subject), entry_(*subject.written().entry()) {}

  void Run() {
    const Compilation& made = *subject_.report().compilation;
    const Instr& root = *entry_.root();
    std::vector<const Instr*> results = {&root};
    if (root.op() == Op::kTuple) results.assign(root.operands().begin(), root.operands().end());
    for (const Instr* result : results) shapes_.push_back(result->shape().WithoutLayout());
    std::vector<bool> taken(results.size());
    for (const ParameterInfo& parameter : made.parameters)
      if (auto r = static_cast<size_t>(parameter.alias_result);
          parameter.alias_result >= 0 && r < taken.size())
        taken[r] = true;
    for (const Instr* parameter : entry_.parameters()) {
      auto number = static_cast<size_t>(parameter->attrs<ParameterAttrs>().number);
      if (number >= made.parameters.size() || made.parameters[number].donated ||
          made.parameters[number].alias_result >= 0)
        continue;
      if (std::optional<size_t> result = Match(*parameter, results, taken)) taken[*result] = true;
    }
    Report(sure_, LintSeverity::kWarning);
    Report(possible_, LintSeverity::kNote);
  }

 private:
  struct Donated {
    std::vector<int64_t> numbers;
    std::vector<std::string> names;
    int64_t bytes = 0;
    double us = 0;
  };

  // The result that is the updated argument.
  std::optional<size_t> Match(const Instr& parameter, const std::vector<const Instr*>& results,
                              const std::vector<bool>& taken) {
    if (LintBytes(parameter) == 0) return std::nullopt;
    std::string name = NameOfArgument(parameter);
    Shape shape = parameter.shape().WithoutLayout();
    for (size_t r = 0; r < results.size(); ++r) {
      if (taken[r] || shapes_[r] != shape) continue;
      if (++pairs_ > kMostPairs) return std::nullopt;
      Update update = UpdateFinder(parameter).Of(*results[r]);
      if (update == Update::kNone) continue;
      std::string_view place = PlaceOf(name);
      bool is_sure =
          update == Update::kInPlace || (!place.empty() && ResultName(entry_, r).ends_with(place));
      Donated& donated = is_sure ? sure_ : possible_;
      donated.numbers.push_back(parameter.attrs<ParameterAttrs>().number);
      donated.names.push_back(name);
      donated.bytes += LintBytes(parameter);
      donated.us += CopiesOf(static_cast<int32_t>(donated.numbers.back()));
      return r;
    }
    return std::nullopt;
  }

  // Copies of the argument, so that its elements can be replaced: donation removes them.
  double CopiesOf(int32_t parameter) {
    double us = 0;
    const std::vector<StepReport>& steps = subject_.report().steps;
    for (size_t i = 0; i < steps.size(); ++i)
      if (steps[i].step != nullptr && steps[i].step->kind == StepKind::kCopy &&
          steps[i].step->slices[1].memory == parameter + 1)
        us += subject_.Claim(i, steps[i].us());
    return us;
  }

  void Report(Donated& donated, LintSeverity severity) {
    if (donated.bytes < kMinDonation) return;
    std::string list = ShortList(donated.names, kShownArguments);
    std::string text = fmt::format(
        "{} of {} {} updated into results of the same type, in other memory: "
        "jax.jit(..., donate_argnums=...) saves {} if the caller does not use {} again",
        list, BytesText(donated.bytes), donated.names.size() == 1 ? "is" : "are",
        BytesText(donated.bytes), donated.names.size() == 1 ? "it" : "them");
    subject_.Add({.rule = "lint.missing-donation",
                  .severity = severity,
                  .us = severity == LintSeverity::kWarning ? donated.us : 0,
                  .text = std::move(text),
                  .fix = {.kind = "donate_argnums",
                          .numbers = std::move(donated.numbers),
                          .names = std::move(donated.names)}});
  }

  LintSubject& subject_;
  const Computation& entry_;
  std::vector<Shape> shapes_;  // of the results, without layouts
  Donated sure_, possible_;
  int64_t pairs_ = 0;
};

}  // namespace

void LintDonation(LintSubject& subject) {
  if (subject.has_written()) Donations(subject).Run();
}

}  // namespace tokamak
