// A while whose rounds are counted and in which every element of what it carries goes its own way:
// one kernel that runs all rounds for a few elements, which stay in registers, then for the next.

#include <algorithm>

#include "gen/element.h"
#include "gen/generator.h"
#include "gen/roots.h"

namespace tokamak {
namespace {

// Primitives that a launch may take: nobody can stop it.
constexpr double kMostWork = 2e8;
// Rounds of fewer primitives wait for one another: more elements at a time fill the time.
constexpr size_t kShortBody = 24;

class RoundsBuilder {
 public:
  RoundsBuilder(const Region& region, int64_t rounds, const Machine& machine,
                const std::string& name)
      : region_(region),
        loop_(*region.roots[0]),
        body_(*loop_.called(1)),
        rounds_(rounds),
        machine_(machine),
        b_(name),
        emitter_(b_, region) {}

  BuildOutcome Build() {
    if (std::string why = FindDims(); !why.empty()) return {std::nullopt, why};
    int64_t count = ProductOf(dims_, 0, dims_.size());
    auto primitives = static_cast<double>(body_.size());
    if (primitives * static_cast<double>(rounds_) * std::max(1.0, static_cast<double>(count) / 16) >
        kMostWork)
      return {std::nullopt, "it would run for long, and nobody could stop it"};
    int64_t vectors = body_.size() < kShortBody ? 4 : 2;
    int64_t lanes = std::min(vectors * machine_.Lanes(32), PowerBelow(std::max<int64_t>(count, 1)));
    int64_t teams = (count + lanes - 1) / lanes;
    b_.For("g", LoopRole::kGrid, b_.Index(teams), [&](Scalar g) {
      Scalar begin = LesserOf(g * b_.Index(lanes), b_.Index(count - lanes));
      if (lanes == 1) return Run(g, begin);
      b_.For("l", LoopRole::kVector, b_.Index(lanes), [&](Scalar l) { Run(g, begin + l); });
    });
    if (!fault_.empty()) return {std::nullopt, fault_};
    return FinishLoop(b_, emitter_, region_, teams, false);
  }

 private:
  static bool IsSingle(const Instr& instr) { return instr.shape().ElementCount() == 1; }

  // The dimensions of all arrays among what is carried.
  std::string FindDims() {
    bool found = false;
    for (const Instr* operand : loop_.operands()) {
      if (operand->shape().ElementCount() == 0) return "it carries nothing";
      if (IsSingle(*operand)) continue;
      if (found && operand->shape().dims() != dims_) return "it carries arrays of several shapes";
      dims_ = operand->shape().dims();
      found = true;
    }
    return "";
  }

  // One element of each array, through all rounds.
  void Run(Scalar g, Scalar linear) {
    std::vector<std::array<ArrayId, 2>> registers;
    std::vector<Element> now;
    for (const Instr* operand : loop_.operands()) {
      const Dims& dims = operand->shape().dims();
      Scalar at = IsSingle(*operand) ? b_.Index(0) : linear;
      now.push_back(emitter_.At(*operand, Delinearized(b_, at, dims)));
    }
    for (size_t i = 0; i < now.size(); ++i) {
      std::array<ArrayId, 2> own{};
      for (size_t part : {0, 1}) {
        if (!now[i][part].ok()) continue;
        own[part] = b_.Local("c" + std::to_string(i), now[i][part].type(), Space::kRegisters, 1);
        b_.Store(own[part], b_.Index(0), now[i][part]);
      }
      registers.push_back(own);
    }
    auto read = [&] {
      for (size_t i = 0; i < now.size(); ++i)
        for (size_t part : {0, 1})
          if (now[i][part].ok()) now[i][part] = b_.Read(registers[i][part], b_.Index(0));
    };
    b_.For("k", LoopRole::kSerial, b_.Index(rounds_), [&](Scalar) {
      read();
      std::optional<std::vector<Element>> next = ApplyBody(b_, body_, now, false, &dims_);
      if (!next || next->size() != now.size()) {
        fault_ = "its body is not made of elements alone";
        return;
      }
      for (size_t i = 0; i < now.size(); ++i)
        for (size_t part : {0, 1})
          if (now[i][part].ok()) b_.Store(registers[i][part], b_.Index(0), (*next)[i][part]);
    });
    if (!fault_.empty()) return;
    read();
    for (size_t i = 0; i < now.size(); ++i)
      if (!IsSingle(*loop_.operand(i))) emitter_.StoreLinear(loop_, i, linear, now[i]);
    b_.If(g == b_.Index(0), [&] {
      for (size_t i = 0; i < now.size(); ++i)
        if (IsSingle(*loop_.operand(i))) emitter_.StoreLinear(loop_, i, b_.Index(0), now[i]);
    });
  }

  const Region& region_;
  const Instr& loop_;
  const Computation& body_;
  int64_t rounds_;
  const Machine& machine_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  Dims dims_;
  std::string fault_;
};

}  // namespace

BuildOutcome BuildRounds(const Region& region, int64_t rounds, const Machine& machine,
                         const std::string& name) {
  for (const Instr* operand : region.roots[0]->operands())
    if (!IsPlainArray(operand->shape())) return {std::nullopt, "it carries what is no array"};
  return RoundsBuilder(region, rounds, machine, name).Build();
}

}  // namespace tokamak
