#pragma once

// The tools of drawers. A drawer adds one element to a computation: an op with well-typed operands,
// or a few related ops.
//
// C++ does not specify the evaluation order of call arguments, and a program must be the same with
// every compiler: at most one argument of a call may draw. Braced lists are evaluated from left to
// right.

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

// State shared by all computations of one program while it is generated.
struct ProgramState {
  ProgramState(Module& m, uint64_t seed, const ProgramSize& s) : module(m), random(seed), size(s) {}
  Module& module;
  Random random;
  ProgramSize size;
  int instrs = 0;                       // so far
  int target = 0;                       // generation stops here
  std::vector<ElementType> types;       // few, so that values combine
  std::vector<Computation*> functions;  // callable functions generated so far
  int names = 0;
};

// One computation being generated.
class ProgramBuilder {
 public:
  enum class Kind : uint8_t { kEntry, kBody };
  ProgramBuilder(ProgramState& program_state, std::string_view name, Kind kind, int depth);

  ProgramState& program_state() { return program_state_; }
  Random& random() { return program_state_.random; }
  Computation* computation() { return computation_; }
  int depth() const { return depth_; }
  bool HasRoom(int instrs) const {
    return program_state_.instrs + instrs <= program_state_.size.max_instrs;
  }

  // ---- adding: null if an operand is null, if inference rejects it, or if it is too large.
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
  Instr* Constant(const Shape& shape);  // of any kind of numbers
  Instr* Constant(const Value& value);
  Instr* Integer(ElementType type, int64_t value);  // a scalar constant
  Instr* Number(const Shape& shape, double value);  // all elements
  Instr* Element(Instr* tuple, int64_t index);
  Instr* Reshape(Instr* x, Dims dims);
  Instr* Convert(Instr* x, ElementType type);
  Instr* Broadcast(Instr* x, Dims dims, Dims map);
  // Broadcasts the scalar x to these dimensions.
  Instr* BroadcastTo(Instr* x, const Dims& dims) { return Broadcast(x, dims, {}); }

  // ---- choosing
  //
  // Any array; recent ones are more likely. Never null.
  Instr* Any();
  // One that satisfies `fits`, or null.
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
  // One whose type `op` accepts; a new one if necessary.
  Instr* AnyFor(Op op);
  // A nonempty array of at least this rank; a new one if necessary.
  Instr* AnyOfRank(int64_t least);
  // An array of exactly this shape: an existing one, a constant, or one derived from another.
  Instr* Like(const Shape& shape);
  Instr* LikeButDrawn(const Shape& shape);  // like Like, but not a constant
  Instr* Scalar(ElementType type) { return Like(Shape::Scalar(type)); }
  // An index into a dimension of `size` elements: mostly in range, mostly constant.
  Instr* Index(ElementType type, int64_t size);
  Instr* AnyTuple() { return tuples_.empty() ? nullptr : random().Pick(tuples_); }

  ElementType AnyType();                 // one of the program's few types
  ElementType AnyType(TypeClass types);  // one in this class, else f32, s32 ...
  ElementType IndexType();
  Shape AnyShape(ElementType type);  // often an existing one
  Dims AnyDims();
  Dims WideDims();
  Dims Permutation(int64_t rank);

  const std::vector<Instr*>& values() const { return values_; }
  const std::vector<Instr*>& tuples() const { return tuples_; }

 private:
  void Keep(Instr* instr);
  Instr* Adapt(Instr* x, const Shape& shape);
  Instr* Resize(Instr* x, const Dims& dims);

  ProgramState& program_state_;
  Computation* computation_;
  Kind kind_;
  int depth_;
  std::vector<Instr*> values_, tuples_;
};

// Adds one element to the program. Returns false if nothing here is suitable.
using DrawFn = bool (*)(ProgramBuilder&);
struct Drawer {
  std::string_view name;
  int weight;
  int instrs;  // approximate number of instructions it adds
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

// A convolution of images, with types and sizes for tensor cores; null if it would be too large.
Instr* DrawImageConvolution(ProgramBuilder& builder);
// Of both operands; `default_percent`: how often it is the default.
std::vector<Precision> DrawPrecision(Random& random, int default_percent);
// A program of contractions, and of what generators fuse with them. Returns the result.
Instr* DrawContractions(ProgramBuilder& builder);
// Adds about `instrs` instructions with randomly chosen drawers.
void DrawOn(ProgramBuilder& builder, int instrs);
// A value of the computation without uses, or any value if there is none.
Instr* Loose(ProgramBuilder& builder);
// Copies the callee's instructions with these arguments; returns the copy of its root, or null.
Instr* Paste(ProgramBuilder& builder, const Computation& callee,
             const std::vector<Instr*>& arguments);
// An infeed; returns its array, which may remain unused. The host's arrays arrive in order: a pass
// that drops, merges or moves an infeed changes the values of others.
Instr* Infeed(ProgramBuilder& builder);
// A dimension as an index of a vector.
inline size_t At(int64_t dimension) {
  return static_cast<size_t>(dimension);
}
// The scalar computation (T, T) -> T of a reduction.
Computation* Combiner(ProgramBuilder& builder, ElementType type, Op op);

}  // namespace tokamak::fuzz
