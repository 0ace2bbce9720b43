#include "driver/testing/expect.h"

#include <optional>

#include "driver/run/arguments.h"
#include "interp/interp.h"
#include "ir/clone.h"

namespace tokamak {
namespace {

using Arrays = std::vector<std::pair<std::string, Literal>>;

class Comparison {
 public:
  Comparison(const NpzFile& expected, const Module& module, std::span<const Value> arguments,
             const ExpectOptions& options)
      : expected_(expected), module_(module), arguments_(arguments), options_(options) {}

  ExpectOutcome Run(const std::vector<Value>& results) {
    Arrays named = NameResults(results, *module_.entry());
    std::vector<int64_t> counts = CountsOf(results);
    for (size_t i = 0; i < named.size(); ++i) CompareOne(named[i], i, counts[i]);
    std::string surplus = "out_" + std::to_string(named.size());
    if (expected_.Find(surplus) != nullptr)
      AddMismatch(ErrorCode::kResultMismatch, "run: '" + surplus +
                                                  "' is expected, but the program has " +
                                                  std::to_string(named.size()) + " results");
    return std::move(outcome_);
  }

 private:
  void AddMismatch(ErrorCode code, std::string text) {
    outcome_.mismatches.push_back(MakeError(code, std::move(text), {.file = expected_.path}));
  }

  void CompareOne(const std::pair<std::string, Literal>& result, size_t i, int64_t count) {
    const auto& [name, got] = result;
    const Literal* stored = expected_.Find(name);
    if (stored == nullptr) {
      AddMismatch(ErrorCode::kMissingArray, "npz: there is no array '" + name +
                                                "' to compare the result " + ToString(got.shape()) +
                                                " with");
      return;
    }
    Result<Literal> carried = FromCarrier(*stored, got.shape(), name, expected_.path);
    if (!carried.ok()) {  // the program has a different type
      AddMismatch(ErrorCode::kResultMismatch, carried.error().message);
      return;
    }
    std::vector<Literal> opinions = {got};
    // Other opinions about the expected values only excuse the interpreter: a backend's result must
    // itself be close to one of the opinions.
    auto difference = [&] {
      std::string mismatch = DifferenceBeyond(opinions, carried.value(), options_.tolerance, count);
      if (!mismatch.empty() || options_.is_interpreted || opinions.size() == 1) return mismatch;
      std::vector<Literal> others(opinions.begin() + 1, opinions.end());
      others.push_back(carried.value());
      AskAlso(others, Reference(), i);
      AskAlso(others, Stable(), i);
      return DifferenceBeyond(others, got, options_.tolerance, count);
    };
    std::string words = difference();
    if (words.empty()) return;
    // Integers have only one correct value.
    bool rounded = IsReal(got.type()) || IsComplex(got.type());
    if (rounded && AskAlso(opinions, Oracle(), i) && difference().empty()) {
      outcome_.notes.push_back(name + " agrees if floats are rounded at the end only");
      return;
    }
    if (AskAlso(opinions, Flushed(), i) && difference().empty()) {
      outcome_.notes.push_back(name + " agrees if subnormal numbers are flushed to 0");
      return;
    }
    AddMismatch(ErrorCode::kResultMismatch, name + ": " + words);
  }

  static bool AskAlso(std::vector<Literal>& opinions, const Arrays& arrays, size_t i) {
    if (i >= arrays.size() || arrays[i].second.shape() != opinions[0].shape()) return false;
    opinions.push_back(arrays[i].second);
    return true;
  }

  const Arrays& Reference() {
    if (!reference_) reference_ = Rerun(NumericMode::kReference, false, module_);
    return *reference_;
  }
  // The order of elements that a sort compares as equal is unspecified unless it is stable; the
  // backends' sorts are stable.
  const Arrays& Stable() {
    if (stable_) return *stable_;
    std::unique_ptr<Module> module = CloneModule(module_);
    for (const auto& computation : module->computations()) {
      for (Instr* instr : computation->Instrs()) {
        if (instr->op() != Op::kSort) continue;
        SortAttrs attrs = instr->attrs<SortAttrs>();
        attrs.is_stable = true;
        instr->set_attrs(std::move(attrs));
      }
    }
    stable_ = Rerun(NumericMode::kReference, false, *module);
    return *stable_;
  }
  const Arrays& Oracle() {
    if (!oracle_) oracle_ = Rerun(NumericMode::kOracle, false, module_);
    return *oracle_;
  }
  const Arrays& Flushed() {
    if (!flushed_) flushed_ = Rerun(NumericMode::kReference, true, module_);
    return *flushed_;
  }

  // Empty if the run fails: then there is no such opinion.
  Arrays Rerun(NumericMode mode, bool flush_subnormals, const Module& module) const {
    if (options_.strict) return {};
    RunOptions run;
    run.mode = mode;
    run.flush_subnormals = flush_subnormals;
    Result<RunOutcome> outcome = Interpret(module, arguments_, run);
    return outcome.ok() ? NameResults(outcome.value().results, *module_.entry()) : Arrays{};
  }

  // The number of valid elements of each array; with bounds, fewer than NameResults returns.
  static std::vector<int64_t> CountsOf(const std::vector<Value>& results) {
    std::vector<int64_t> counts;
    for (const Value& value : results)
      if (!value.shape().IsToken()) counts.push_back(value.ElementCount());
    return counts;
  }

  const NpzFile& expected_;
  const Module& module_;
  std::span<const Value> arguments_;
  const ExpectOptions& options_;
  std::optional<Arrays> reference_, stable_, oracle_, flushed_;
  ExpectOutcome outcome_;
};

}  // namespace

ExpectOutcome CompareWithExpected(const NpzFile& expected, const Module& module,
                                  std::span<const Value> arguments,
                                  const std::vector<Value>& results, const ExpectOptions& options) {
  return Comparison(expected, module, arguments, options).Run(results);
}

}  // namespace tokamak
