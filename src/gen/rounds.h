#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/independent.h"
#include "gen/element.h"
#include "gen/generator.h"

// All rounds of a loop for one place of its space (analysis/independent.h). What changes is held in
// registers, what is stacked is written as it is made, all else is read where it is needed. The
// loops around it, over all places, are those of a machine (rounds.cc, gpu/rounds.cc).

namespace tokamak {

// Elements that a place may hold in registers.
inline constexpr int64_t kMostHeld = 96;

class RoundsFrame;

// Threads of a warp that run the rounds of one place together: products are shared out, all else
// each of them computes.
struct RoundsGroup {
  int64_t threads = 1;  // of a place
  int64_t places = 1;   // of a team
  Scalar member, slot;  // which of the threads; which of the places
};

// Elements of places that the threads of a team share out. What a place carries has `elements`
// elements, or some times as many: a thread has its own, and those whole multiples of `elements`
// further. Products are made by warps, for the elements of their threads; what they multiply
// crosses in team memory. The lanes of a warp have `units` neighbouring elements of `rows` places,
// several lanes each the same one: RoundsGroup counts those.
struct RoundsSpread {
  int64_t elements = 0;  // 0: a thread has all elements of its place
  int64_t units = 1, rows = 1;
  Scalar element, first_element;  // the thread's; the first of its warp's
  Scalar row, lane;               // its place among those of the team; its number in the warp
  Scalar round;
};

// What an emitter of a loop's body has in common with those of the loops within it.
struct RoundsContext {
  KernelBuilder& b;
  const IndependentLoop& form;
  ElementEmitter& top;  // what is read from memory
  Coordinates place;
  std::string fault;       // the first; "" so far there is none
  int64_t held = 0;        // registers, in elements
  RoundsGroup group = {};  // one thread
  RoundsSpread spread = {};
  std::vector<RoundsFrame*> frames = {};

  void Fail(const std::string& why) {
    if (fault.empty()) fault = why;
  }
  // A block is closed: what was read in it is not known after it.
  void Forget();
};

// A dot of a vector that a place holds and a matrix: too much to be written out, it is a loop that
// keeps vector and sums in an array.
struct RoundsProduct {
  const Instr* dot = nullptr;
  const std::vector<int>* axes = nullptr;  // of the result
  size_t vector = 0;                       // the operand that is one
  int64_t taps = 0, sums = 0;

  Dims SumDims() const;  // of the result, those that a place has all of
  Dims TapDims() const;
};
std::optional<RoundsProduct> ProductOf(const IndependentLoop& form, const Instr& dot);
// The same of any size.
std::optional<RoundsProduct> LargeProductOf(const IndependentLoop& form, const Instr& dot);
// The coordinates of an operand of a dot, of a result and of what is folded.
Coordinates PlaceOf(const Instr& dot, size_t operand, const Coordinates& at,
                    const Coordinates& tap);
// Of the loop and of those within it; nothing when threads cannot go on together there: how often a
// loop runs is not known.
std::vector<RoundsProduct> ProductsToShare(const RoundsRegion& region);

// The elements that a place holds of an array: those with its coordinates along the axes, and all
// along other dimensions, row-major. Where threads share out a place, those of the thread.
class OwnElements {
 public:
  OwnElements(const RoundsContext& context, const Shape& shape, const CarryForm& form);
  int64_t count() const { return count_; }
  bool is_spread() const { return apart_ > 0; }
  Coordinates At(RoundsContext& context, int64_t element) const;
  // Which of `values` is at the coordinates.
  Element Find(RoundsContext& context, const std::vector<Element>& values,
               const Coordinates& at) const;

 private:
  Element FindSpread(RoundsContext& context, const std::vector<Element>& values,
                     const Coordinates& at) const;

  const Shape& shape_;
  const CarryForm& form_;
  int64_t count_ = 1;
  int64_t apart_ = 0;  // from one element of a thread to its next; 0: it has all of them
  Dims own_;           // dimensions that are no axes
};
// How far an index lies behind the thread's element, when that is known.
std::optional<int64_t> BehindElement(RoundsContext& context, Scalar index);

// What a loop carries while it runs.
class CarriedValues {
 public:
  // `first`: the first values; a part for each carried value.
  CarriedValues(RoundsContext& context, const WhileLoop& loop, const std::vector<CarryForm>& forms,
                std::optional<int64_t> rounds, std::shared_ptr<ElementGiver> first);

  // From here on the values are those of round `round`, or of the end.
  void Read(std::optional<Scalar> round);
  Element At(size_t i, const Coordinates& at) const;
  bool IsHeld(size_t i) const { return !registers_[i].empty(); }
  // Whether all places hold the same array.
  bool HoldsSharedArray() const;
  const OwnElements& Own(size_t i) const { return own_[i]; }
  void Store(size_t i, const std::vector<Element>& values);

 private:
  Element Counted(size_t i) const;

  RoundsContext& context_;
  const std::vector<CarryForm>& forms_;
  std::optional<int64_t> rounds_;
  std::shared_ptr<ElementGiver> first_;
  std::vector<std::optional<Induction>> counters_;  // those that need no register
  std::vector<OwnElements> own_;
  std::vector<std::vector<std::array<ArrayId, 2>>> registers_;
  std::vector<std::vector<Element>> now_;
  std::optional<Scalar> round_;
};

// Code for elements of a computation that runs in rounds. Loops within it are written when it is
// made, so that all else is pure values.
class RoundsFrame {
 public:
  // `given`: the parameters, a part each.
  RoundsFrame(RoundsContext& context, const Computation& computation,
              std::shared_ptr<ElementGiver> given);
  ~RoundsFrame();
  Element At(const Instr& instr, const Coordinates& at, size_t part = 0);
  // Where a dynamic-update-slice writes the element of its update at coordinates.
  Coordinates UpdatePlace(const Instr& update, const Coordinates& at);
  void Forget() { emitter_.Forget(); }

 private:
  void Add(const Instr& instr);
  // The factor of an operand, in the type of sums.
  Scalar FactorOf(const RoundsProduct& product, size_t operand, Scalar tap, Scalar sum);
  void AddProduct(const RoundsProduct& product);
  void AddSpreadProduct(const RoundsProduct& product);
  void AddLoop(const Instr& instr);
  void AddBranches(const Instr& instr);
  std::vector<Element> Reduced(const Instr& reduce, const Coordinates& at);
  Element Contracted(const Instr& dot, const Coordinates& at);
  Element ZeroOf(const Instr& instr, size_t part);

  RoundsContext& context_;
  ElementEmitter emitter_;
  std::vector<std::unique_ptr<RoundsFrame>> branches_;
  std::vector<std::unique_ptr<CarriedValues>> loops_;
};

// Sees the body of each round before values change.
class RoundsWatcher {
 public:
  virtual ~RoundsWatcher() = default;
  virtual void Look(RoundsFrame& body) = 0;
};
// Some rounds of a loop whose number is known.
struct RoundsSpan {
  Scalar from, count;
};
// Writes a loop: its rounds, or those of `span`, one after the other. `watcher` may be null.
void EmitRounds(RoundsContext& context, const WhileLoop& loop, std::optional<int64_t> rounds,
                CarriedValues& carried, RoundsWatcher* watcher, const RoundsSpan* span = nullptr);

// A giver of a function (at, part) -> Element.
template <typename Fn>
std::shared_ptr<ElementGiver> GiverOf(Fn fn) {
  struct Giver : ElementGiver {
    explicit Giver(Fn f) : fn(std::move(f)) {}
    Element At(const Coordinates& at, size_t part) override { return fn(at, part); }
    Fn fn;
  };
  return std::make_shared<Giver>(std::move(fn));
}

// Whether the rounds write all of a stacked value, so that what it was before does not matter.
bool IsCovered(const RoundsRegion& region, size_t carry);
// Whether a round may write what an earlier one stacked. Where several run the same place, one that
// is late would then put back an older value: one alone may write.
bool StacksAgain(const RoundsRegion& region);

// A loop as a kernel: arguments, one place, results.
class RoundsKernel : private RoundsWatcher {
 public:
  RoundsKernel(KernelBuilder& b, const RoundsRegion& region);
  // Several threads run a place.
  void ShareOut(RoundsGroup group) { context_->group = group; }
  // Threads share out the elements of a place, too.
  void Spread(const RoundsSpread& spread) { context_->spread = spread; }
  // Others run the place, too: it is written where this holds.
  void WriteWhere(Scalar alone) { alone_ = alone; }
  // All rounds for one place. `first`: whether it is the one that writes what all places know.
  void Run(const Coordinates& place, Scalar first);
  // The same in parts: before the first round, some rounds, after the last. Between them what a
  // place holds is kept in arrays, as that of `slot` among `slots`.
  void Begin(const Coordinates& place, Scalar slot, int64_t slots);
  void Continue(const Coordinates& place, Scalar slot, Scalar first, const RoundsSpan& span);
  void End(const Coordinates& place, Scalar slot, Scalar first);
  BuildOutcome Finish(int64_t grid, bool exact);

 private:
  struct Output {
    size_t carry;
    ArrayId array;
  };
  // What a place begins with, of those that are kept or else from memory.
  std::shared_ptr<ElementGiver> KeptAt(Scalar slot);
  CarriedValues Carried(const Coordinates& place, Scalar first,
                        std::shared_ptr<ElementGiver> begin);
  void Keep(CarriedValues& carried, Scalar slot);
  void WriteResults(CarriedValues& carried);
  // Writes what a round stacks.
  void Look(RoundsFrame& body) override;
  // Whether this place writes an array; places that differ along axes which the array does not have
  // make the same elements of it.
  Scalar Writes(const CarryForm& form, const OwnElements& own);
  void StoreAt(const Output& output, const Coordinates& at, const Element& value);
  const Shape& ShapeOf(size_t carry) const;

  KernelBuilder& b_;
  const RoundsRegion& region_;
  Region read_;  // for the emitter of what is read
  std::unique_ptr<ElementEmitter> top_;
  std::unique_ptr<RoundsContext> context_;
  std::vector<Output> outputs_;
  Scalar first_, alone_;                                   // of the place at hand
  std::vector<std::vector<std::array<ArrayId, 2>>> kept_;  // of carried values, their elements
};

// A CPU's kernel that runs some rounds of many places before the next rounds of any: what it reads
// and stacks of each round is then long enough for the processor to see it coming. Refused where
// that is little.
BuildOutcome BuildRoundsInBlocks(const RoundsRegion& region, const Machine& machine, int64_t lanes,
                                 const std::string& name);

}  // namespace tokamak
