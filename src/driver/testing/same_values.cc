// Evidence that a pass preserves values: the interpreter runs the program before and after it, on
// the same inputs.
//
//   inputs    random numbers; hard ones (NaN, infinities, signed zeros, extremes); the user's
//   exact     Compare: equal bits, except for the payload of NaN
//   rounding  CompareClosely: within the tolerance of the original or of the unrounded result
//
// A reference run that takes too long, fails or differs from a second run of the same program
// proves nothing; `why_not_` gives the reason. A transformed program may take 20 times as long as
// the original, plus 10 s, before it counts as not terminating. Passes may flatten tuple parameters
// and append arguments, so arguments are adapted to the entry.

#include "driver/testing/same_values.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "driver/run/arguments.h"
#include "driver/run/compare_arrays.h"
#include "interp/arguments.h"
#include "interp/interp.h"
#include "ir/clone.h"
#include "support/splitmix.h"

namespace tokamak {
namespace {

// Limit of the elements in all parameters: 2^26 elements of 8 bytes are about what the interpreter
// reads in a second (chosen).
constexpr int64_t kMaxParameterElements = int64_t{1} << 26;

int64_t ComparedElements(const Shape& shape) {
  if (shape.IsArray()) return shape.HasDynamicDims() ? 0 : shape.ElementCount();
  int64_t count = 0;
  for (const Shape& element : shape.elements()) count += ComparedElements(element);
  return count;
}

// Sets a flag after a timeout, unless it is destroyed first.
class Alarm {
 public:
  explicit Alarm(double seconds)
      : thread_([this, seconds] {
          std::unique_lock lock(mutex_);
          if (!done_.wait_for(lock, std::chrono::duration<double>(seconds),
                              [this] { return finished_; }))
            rang_ = true;
        }) {}
  ~Alarm() {
    {
      std::lock_guard lock(mutex_);
      finished_ = true;
    }
    done_.notify_all();
    thread_.join();
  }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  const std::atomic<bool>* flag() const { return &rang_; }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool finished_ = false;
  std::atomic<bool> rang_{false};
  std::thread thread_;
};

double HardReal(uint64_t random, double ordinary, ElementType type) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  static constexpr double kHard[] = {0.0,  -0.0,  1.0,  -1.0,  kInf,   -kInf,  kNan,
                                     0.5,  2.0,   -2.0, 1e-40, -1e-40, 3e38,   -3e38,
                                     1e30, 1e-30, 1e-7, 7.0,   65504,  -65504, 0x1p-149};
  constexpr size_t kCount = std::size(kHard);
  size_t pick = random % (2 * kCount);
  return RoundToType(type, pick < kCount ? kHard[pick] : ordinary);
}

template <typename T>
T HardElement(uint64_t random, T ordinary, ElementType type) {
  if constexpr (std::is_same_v<T, Complex>) {
    ElementType part = RealPartOf(type);
    return {HardReal(random, ordinary.real(), part),
            HardReal(MixBits(random), ordinary.imag(), part)};
  } else if constexpr (std::is_same_v<T, double>) {
    return HardReal(random, ordinary, type);
  } else if constexpr (std::is_same_v<T, uint8_t>) {
    return ordinary;
  } else {
    int bits = InfoOf(type).bits;
    uint64_t top = uint64_t{1} << (bits - 1);
    const uint64_t hard[] = {0, 1, ~uint64_t{0}, top, top - 1, 2, static_cast<uint64_t>(bits), 5};
    size_t pick = random % 16;
    if (pick >= 8) return ordinary;
    if constexpr (std::is_same_v<T, int64_t>) {
      return WrapSigned(type, static_cast<int64_t>(hard[pick]));
    } else {
      return WrapUnsigned(type, hard[pick]);
    }
  }
}

Value Hardened(const Value& value, uint64_t seed) {
  const Shape& shape = value.shape();
  if (shape.IsTuple()) {
    std::vector<Value> elements;
    for (const Value& element : value.elements())
      elements.push_back(Hardened(element, seed = MixBits(seed + 1)));
    return Value::Tuple(std::move(elements));
  }
  if (!shape.IsArray()) return value;
  return DispatchStorage(shape.type(), [&]<typename T>() {
    std::span<const T> data = value.Data<T>();
    std::vector<T> elements(data.begin(), data.end());
    for (T& element : elements) {
      seed += 0x9e3779b97f4a7c15u;
      element = HardElement<T>(MixBits(seed), element, shape.type());
    }
    return Value::Array(shape, std::move(elements));
  });
}

void Flatten(const Value& value, std::vector<Literal>& leaves) {
  if (value.shape().IsTuple()) {
    for (const Value& element : value.elements()) Flatten(element, leaves);
  } else if (value.shape().IsArray()) {
    leaves.push_back(LiteralFromValue(value));
  }
}

bool SameNumber(const Literal& a, const Literal& b, int64_t i) {
  auto same = [](double x, double y) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    return x == y && std::signbit(x) == std::signbit(y);
  };
  if (IsComplex(a.type()))
    return same(a.ComplexAt(i).real(), b.ComplexAt(i).real()) &&
           same(a.ComplexAt(i).imag(), b.ComplexAt(i).imag());
  if (IsReal(a.type())) return same(a.DoubleAt(i), b.DoubleAt(i));
  return a.BitsAt(i) == b.BitsAt(i);
}

std::string Difference(const Literal& before, const Literal& after) {
  if (!Compatible(before.shape(), after.shape()))
    return fmt::format("it was {}, now {}", ToString(before.shape()), ToString(after.shape()));
  if (before == after) return {};
  for (int64_t i = 0; i < before.shape().ElementCount(); ++i)
    if (!SameNumber(before, after, i))
      return fmt::format("element {} was {}, now {}", i, ElementText(before, i),
                         ElementText(after, i));
  return {};
}

// The results when reals stay double to the end; empty if that cannot be run.
std::vector<Literal> Unrounded(const Module& module, const std::vector<Value>& arguments) {
  RunOptions options;
  options.mode = NumericMode::kOracle;
  Result<RunOutcome> outcome = Interpret(module, arguments, options);
  std::vector<Literal> results;
  if (!outcome.ok()) return results;
  for (const Value& value : outcome.value().results) Flatten(value, results);
  return results;
}

// Accepts `after` if it is as close to the unrounded result as the tolerance, even if rounding
// moved the original away.
std::string DifferenceFromBoth(const Literal& before, const Literal* unrounded,
                               const Literal& after) {
  std::string difference = Difference(before, after);
  if (difference.empty() || !Compatible(before.shape(), after.shape())) return difference;
  int64_t count = before.shape().ElementCount();
  difference = DifferenceBeyond({&after, 1}, before, Tolerance{}, count);
  if (difference.empty() || unrounded == nullptr) return difference;
  if (DifferenceBeyond({&after, 1}, *unrounded, Tolerance{}, count).empty()) return {};
  // If the program's own roundings move a result further than the tolerance (chaotic motion), a
  // difference in rounding proves nothing.
  return DifferenceBeyond({&before, 1}, *unrounded, Tolerance{}, count).empty() ? difference : "";
}

std::vector<Value> Joined(std::vector<Value> arguments, std::span<const Value> added) {
  arguments.insert(arguments.end(), added.begin(), added.end());
  return arguments;
}

// The arguments for the entry's current parameters: a pass may have flattened its tuples.
std::vector<Value> ArgumentsFor(const Module& module, const std::vector<Value>& arguments) {
  const std::vector<Instr*>& parameters = module.entry()->parameters();
  bool are_whole = std::ranges::equal(parameters, arguments, [](const Instr* p, const Value& v) {
    return p->shape().IsTuple() == v.shape().IsTuple();
  });
  if (are_whole) return arguments;
  std::vector<Value> leaves;
  for (const Value& argument : arguments) AddLeaves(argument, leaves);
  return leaves;
}

}  // namespace

Result<std::vector<Value>> DrawHardArguments(uint64_t seed, const Computation& entry) {
  TOK_TRY(std::vector<Value> arguments, DrawArguments(seed, entry));
  for (Value& argument : arguments) argument = Hardened(argument, seed = MixBits(seed + 77));
  return arguments;
}

std::optional<Proof::Run> Proof::RunOn(const Module& module, std::string inputs,
                                       std::vector<Value> arguments, double seconds,
                                       std::string& why) const {
  Run run;
  run.inputs = std::move(inputs);
  run.arguments = std::move(arguments);
  Alarm alarm(seconds);
  RunOptions options;
  options.stop = alarm.flag();
  auto begin = std::chrono::steady_clock::now();
  Result<RunOutcome> outcome = Interpret(module, ArgumentsFor(module, run.arguments), options);
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!outcome.ok()) {
    why = outcome.error().code == ErrorCode::kStopped
              ? fmt::format("it runs longer than {} s", seconds)
              : outcome.error().message;
    return std::nullopt;
  }
  for (const Value& value : outcome.value().results) Flatten(value, run.results);
  run.checks = outcome.value().checks_passed;
  run.failures = static_cast<int64_t>(outcome.value().failures.size());
  return run;
}

// Any run that succeeds is evidence: why_not_ is set only if none does, or if the program is not
// deterministic.
Proof::Proof(const Module& module, const ProofOptions& options) : module_(CloneModule(module)) {
  if (module.entry() == nullptr) {
    why_not_ = "it has no entry";
    return;
  }
  int64_t elements = 0;
  for (const Instr* parameter : module.entry()->parameters())
    elements += ComparedElements(parameter->shape());
  if (elements > kMaxParameterElements) {
    why_not_ = fmt::format("its parameters have {} elements in total", elements);
    return;
  }
  auto add = [&](const char* inputs, Result<std::vector<Value>> arguments, bool is_hard = false) {
    std::string why;
    if (!arguments.ok()) {
      why = arguments.error().message;
    } else if (auto run =
                   RunOn(module, inputs, std::move(arguments).value(), options.seconds, why)) {
      runs_.push_back(std::move(*run));
      runs_.back().is_hard = is_hard;
      return;
    }
    if (why_not_.empty()) why_not_ = why;
  };
  if (options.inputs != nullptr)
    add("given inputs", ArgumentsFrom(*options.inputs, *module.entry()));
  add("random inputs", DrawArguments(options.seed, *module.entry()));
  if (!runs_.empty() && !module.entry()->parameters().empty())
    add("hard inputs", DrawHardArguments(options.seed, *module.entry()), true);
  if (runs_.empty()) return;
  why_not_.clear();
  // A program that generates random numbers differs from itself.
  if (std::string difference = Compare(module); !difference.empty()) {
    why_not_ = "two runs of it differ: " + difference;
    runs_.clear();
  }
}

std::string Proof::CompareClosely(const Module& after, std::span<const Value> added) const {
  for (const Run& before : runs_) {
    if (before.is_hard) continue;
    std::string why;
    std::optional<Run> run =
        RunOn(after, before.inputs, Joined(before.arguments, added), 20 * before.seconds + 10, why);
    if (!run) return fmt::format("{}: the program no longer runs: {}", before.inputs, why);
    if (run->results.size() != before.results.size())
      return fmt::format("{}: {} results, now {}", before.inputs, before.results.size(),
                         run->results.size());
    std::vector<Literal> unrounded = Unrounded(*module_, before.arguments);
    for (size_t i = 0; i < run->results.size(); ++i) {
      const Literal* truth = i < unrounded.size() ? &unrounded[i] : nullptr;
      if (std::string text = DifferenceFromBoth(before.results[i], truth, run->results[i]);
          !text.empty())
        return fmt::format("{}: out_{}: {}", before.inputs, i, text);
    }
  }
  return {};
}

std::string Proof::Compare(const Module& after, std::span<const Value> added) const {
  for (const Run& before : runs_) {
    std::string why;
    std::optional<Run> run =
        RunOn(after, before.inputs, Joined(before.arguments, added), 20 * before.seconds + 10, why);
    if (!run) return fmt::format("{}: the program no longer runs: {}", before.inputs, why);
    if (run->checks != before.checks || run->failures != before.failures)
      return fmt::format("{}: {} checks passed and {} did not, now {} and {}", before.inputs,
                         before.checks, before.failures, run->checks, run->failures);
    if (run->results.size() != before.results.size())
      return fmt::format("{}: {} results, now {}", before.inputs, before.results.size(),
                         run->results.size());
    for (size_t i = 0; i < run->results.size(); ++i)
      if (std::string text = Difference(before.results[i], run->results[i]); !text.empty())
        return fmt::format("{}: out_{}: {}", before.inputs, i, text);
  }
  return {};
}

}  // namespace tokamak
