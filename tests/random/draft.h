#pragma once

// What drawers work with. A drawer adds one thing to a computation: an op with
// well-typed operands, or a few of them that belong together.
//
// C++ leaves open which argument of a call is computed first, and a program must
// be the same under every compiler: of the arguments of a call only one may draw.
// Lists in braces go from left to right.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/infer.h"
#include "ir/ir.h"
#include "random/elements.h"
#include "random/program.h"
#include "random/random.h"

namespace tokamak::fuzz {

// What all computations of one program share while it is drawn.
struct Plot {
  Plot(Module& m, uint64_t seed, const ProgramSize& s) : module(m), random(seed), size(s) {}
  Module& module;
  Random random;
  ProgramSize size;
  int instrs = 0;                       // so far
  int target = 0;                       // drawing stops here
  std::vector<ElementType> types;       // few, so that values go together
  std::vector<Computation*> functions;  // drawn to be called; may be called again
  int names = 0;
};

// One computation that is being drawn.
class Draft {
 public:
  enum class Kind : uint8_t { kEntry, kBody };
  Draft(Plot& plot, std::string_view name, Kind kind, int depth);

  Plot& plot() { return plot_; }
  Random& random() { return plot_.random; }
  Computation* computation() { return computation_; }
  int depth() const { return depth_; }
  bool HasRoom(int instrs) const { return plot_.instrs + instrs <= plot_.size.max_instrs; }

  // ---- adding: null when an operand is null, when inference refuses it, or when it is too large.
  struct Extra {
    std::optional<Shape> shape = std::nullopt;
    std::vector<Computation*> called = {};
    size_t captures = 0;
  };
  Instr* Put(Op op, std::vector<Instr*> operands, Attrs attrs, Extra extra);
  Instr* Put(Op op, std::vector<Instr*> operands, Attrs attrs = {}) {
    return Put(op, std::move(operands), std::move(attrs), Extra{});
  }
  Instr* Parameter(const Shape& shape);
  Instr* Constant(const Shape& shape, Mood mood);
  Instr* Constant(const Shape& shape);  // in any mood
  Instr* Constant(const Value& value);
  Instr* Integer(ElementType type, int64_t value);  // a scalar constant
  Instr* Number(const Shape& shape, double value);  // all elements
  Instr* Element(Instr* tuple, int64_t index);
  Instr* Reshape(Instr* x, Dims dims);
  Instr* Convert(Instr* x, ElementType type);
  Instr* Broadcast(Instr* x, Dims dims, Dims map);
  // x in each element of an array of these dimensions; x is a scalar.
  Instr* Spread(Instr* x, const Dims& dims) { return Broadcast(x, dims, {}); }

  // ---- choosing
  // An array; recent ones are likelier. Never null.
  Instr* Any();
  // One that `fits`, or null.
  template <typename Fits>
  Instr* AnyThat(Fits fits) {
    for (int i = 0; i < 5 && !values_.empty(); ++i) {
      Instr* value = Any();
      if (fits(value->shape())) return value;
    }
    std::vector<Instr*> good;
    for (Instr* value : values_)
      if (fits(value->shape())) good.push_back(value);
    return good.empty() ? nullptr : random().Pick(good);
  }
  // One whose type `op` takes, a new one if need be.
  Instr* AnyFor(Op op);
  // One of at least this rank and with elements, a new one if need be.
  Instr* AnyOfRank(int64_t least);
  // An array of exactly this shape: there already, a constant, or made of another.
  Instr* Like(const Shape& shape);
  Instr* LikeButDrawn(const Shape& shape);  // as Like, and no constant
  Instr* Scalar(ElementType type) { return Like(Shape::Scalar(type)); }
  // An index into a dimension of `size` elements: mostly in range, mostly constant.
  Instr* Index(ElementType type, int64_t size);
  Instr* AnyTuple() { return tuples_.empty() ? nullptr : random().Pick(tuples_); }

  ElementType AnyType();                 // of the program's few
  ElementType AnyType(TypeClass types);  // of those that fit, else f32, s32 ...
  ElementType IndexType();
  Shape AnyShape(ElementType type);  // often one that is there already
  Dims AnyDims();
  Dims WideDims();
  Dims Permutation(int64_t rank);

  const std::vector<Instr*>& values() const { return values_; }
  const std::vector<Instr*>& tuples() const { return tuples_; }

 private:
  void Keep(Instr* instr);
  Instr* Adapt(Instr* x, const Shape& shape);
  Instr* Resize(Instr* x, const Dims& dims);

  Plot& plot_;
  Computation* computation_;
  Kind kind_;
  int depth_;
  std::vector<Instr*> values_, tuples_;
};

// A way of going on. False: nothing here to do it with.
using DrawFn = bool (*)(Draft&);
struct Drawer {
  std::string_view name;
  int weight;
  int instrs;  // about how many it adds
  DrawFn draw;
};

// By topic, in the files draw_*.cc.
std::span<const Drawer> ElementwiseDrawers();
std::span<const Drawer> AlgebraDrawers();
std::span<const Drawer> MovementDrawers();
std::span<const Drawer> MovementPairDrawers();
std::span<const Drawer> IndexingDrawers();
std::span<const Drawer> ReductionDrawers();
std::span<const Drawer> ContractionDrawers();
std::span<const Drawer> NumericDrawers();
std::span<const Drawer> RandomDrawers();
std::span<const Drawer> ControlDrawers();
std::span<const Drawer> LoopDrawers();
std::span<const Drawer> StructureDrawers();
std::span<const Drawer> HostDrawers();

// Adds about `instrs` instructions by any of the drawers.
void DrawOn(Draft& draft, int instrs);
// A value of the computation whose uses do not lead anywhere yet, else any.
Instr* Loose(Draft& draft);
// Copies of the callee's instructions on these arguments; its root's copy, or null.
Instr* Paste(Draft& draft, const Computation& callee, const std::vector<Instr*>& arguments);
// An infeed; the array that it gives, which may be left unused. The host's arrays come in order:
// who drops, merges or moves an infeed changes what others get.
Instr* Infeed(Draft& draft);
// A dimension as an index of a vector.
inline size_t At(int64_t dimension) {
  return static_cast<size_t>(dimension);
}
// The scalar computation (T, T) -> T of a reduction.
Computation* Combiner(Draft& draft, ElementType type, Op op);

}  // namespace tokamak::fuzz
