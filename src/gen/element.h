#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/index_map.h"
#include "gen/element_memo.h"
#include "gen/region.h"
#include "kernel/builder.h"
#include "kernel/formulas.h"

// Code for single elements. ElementEmitter answers "emit the value of element `at` of instruction
// I" by recursion over the operands of I down to loads of the region's inputs; generators put loops
// around it. For
//
//   r = broadcast(a) + transpose(b)      At(r, {i, j})  ->  load a[j] + load b[j, i]
//
// no intermediate array exists. Memoization makes equal elements one value.
//
// Scalar (kernel/builder.h) is one SSA value of kernel IR, with a ScalarType. A default-constructed
// Scalar is no value (`!ok()`). Element (kernel/formulas.h) is a value of the program, with an
// ElementType: one Scalar, or two for a complex number, where [1] of a real one is no value. In a
// kernel an element has its compute type (ComputeType: f32 for bf16, a pred for pred); in arrays of
// the program its storage type (StorageType: 16 bits for bf16, a byte for pred).

namespace tokamak {

// The arrays of kernel IR that hold one value of the program: [0] the values or real components,
// [1] the imaginary components of a complex type.
using ElementArrays = std::array<ArrayId, 2>;

// Arrays for `size` elements with the compute type of `type`.
ElementArrays LocalElements(KernelBuilder& b, const std::string& name, ElementType type,
                            Space space, int64_t size);
// `type` says whether there is an imaginary component.
Element ReadElement(KernelBuilder& b, const ElementArrays& arrays, ElementType type, Scalar index);
void StoreElement(KernelBuilder& b, const ElementArrays& arrays, Scalar index,
                  const Element& value);
Element Choose(Scalar condition, const Element& yes, const Element& no);

// One index per dimension, each in range.
using Coordinates = std::vector<Scalar>;

// The state of an rng-bit-generator: 64-bit words, by definition of the op for Philox.
inline constexpr size_t kRandomStateWords = 3;
using RandomStateWords = std::array<Scalar, kRandomStateWords>;

// Row-major: the coordinates of element `linear`, and the linear index of coordinates.
Coordinates Delinearized(KernelBuilder& b, Scalar linear, const Dims& dims);
Scalar Linearized(KernelBuilder& b, const Coordinates& at, const Dims& dims);
// The coordinates at which an op reads an operand along single variables, from those of the result
// and those of the iterated variables: reduced or contracted dimensions, the windows of a scatter.
Coordinates ReadCoordinates(const IndexMap& map, const Coordinates& result,
                            const Coordinates& iterated);
// The position of an expression of a map without its run-time start, from the values of all
// variables that it has.
Scalar PositionOf(KernelBuilder& b, const IndexMap& map, const IndexExpr& expr,
                  const Coordinates& variables);

// Returns why the element emitter has no code for the instruction, nullopt if it has. Depends only
// on the instruction and the shapes of its operands.
std::optional<std::string> WhyNoElementCode(const Instr& instr);

// Applies a scalar computation (of a reduce, map, scatter or sort) to values. With `wide`, narrow
// floats (bf16, f16, f8) are computed in f32 throughout, as reductions accumulate them; the caller
// rounds the result. Returns nullopt if an op has no scalar formula (kernel/formulas.h). `dims`: if
// not null, the parameters of the computation are arrays of these dimensions instead of scalars and
// it is elementwise; the arguments are the elements at one index.
std::optional<std::vector<Element>> ApplyBody(KernelBuilder& b, const Computation& body,
                                              std::span<const Element> arguments, bool wide,
                                              const Dims* dims = nullptr);
// The value of one instruction of such a computation, not of its root. Not `wide`.
std::optional<Element> EvaluateInBody(KernelBuilder& b, const Computation& body, const Instr& instr,
                                      std::span<const Element> arguments);
// The accumulator type for elements of `type`: f32 for narrower floats, otherwise the type itself.
ElementType AccumulatorElementType(ElementType type);

// A callback that supplies elements. As the source of an instruction (SetSource), `index` is the
// index of the result. As the source of a computation's parameters or of a loop's carried values,
// it is the index of the parameter or of the value.
class ElementSource {
 public:
  virtual ~ElementSource() = default;
  virtual Element At(const Coordinates& at, size_t index) = 0;
};

// The name of an instruction's result in the text of a kernel.
std::string NameOfArgument(const Instr& instr, size_t result_index);

// Emits code for single elements of the values of a region. Each value is computed at its use, from
// elements of its operands, down to loads of inputs. Equal elements are emitted once.
//
// Elements are identified by the SSA values of their coordinates: two coordinates are the same if
// they are the same value id. A generator can override where an element comes from. At() asks in
// this order:
//
//   1. Bind          one element of a result, instead of all of them. Until the next Bind of the
//                    same result; ClearMemo() does not drop it.
//   2. memo          Memoize, and all values that At() emitted. Until ClearMemo().
//   3. SetSource     all elements of an instruction. Permanent; its values are memoized.
//   4. own code      an immediate, a load of an input, or the code of the instruction's op.
//   5. OverrideLoad  one element of an input, when (4) would load it. Until the next call for the
//                    input; ClearMemo() does not drop it, but a memoized element hides it.
//
// Memoized values are valid while the body of a loop or branch that they were read in is open.
class ElementEmitter {
 public:
  // Declares the kernel's arguments: the inputs, then the roots (each result of a tuple).
  ElementEmitter(KernelBuilder& b, const FusedRegion& region);

  // The element at coordinates; `result_index` selects the result of an instruction with several.
  Element At(const Instr& instr, const Coordinates& at, size_t result_index = 0);
  // From here on At(instr, at, result_index) returns this value, and any other element of that
  // result fails the emitter: a reduction's result is known for the current row only.
  void Bind(const Instr& instr, size_t result_index, const Coordinates& at, Element value);
  // Records that the element at these coordinates is already computed. Other elements are
  // unaffected.
  void Memoize(const Instr& instr, const Coordinates& at, Element value);
  // Drops all memoized values. Required after the body of a loop or branch closes, since values
  // read inside it are not available outside.
  void ClearMemo() { memo_.Clear(); }
  // From here on the element of an input at `index` (row-major) is this value instead of a load.
  // Any other element fails the emitter, or, with `load_otherwise`, is an ordinary load.
  void OverrideLoad(const Instr& input, Scalar index, Element value, bool load_otherwise = false);
  // From here on the elements of the instruction come from `element_source`.
  void SetSource(const Instr& instr, std::shared_ptr<ElementSource> element_source);
  // Loads the element of an input in its storage type, without conversion. Ignores all overrides.
  Scalar LoadStored(const Instr& input, Scalar index);
  // The coordinates that a dynamic-update-slice writes for the element `at` of its update.
  Coordinates UpdateDestination(const Instr& instr, const Coordinates& at);
  // Stores an element of a root.
  void Store(const Instr& root, size_t result_index, const Coordinates& at, Element value);
  // The array of an input, and of a root's first result.
  ArrayId InputOf(const Instr& input) const;
  ArrayId OutputOf(const Instr& root) const { return OutputOf(root, 0); }
  void StoreLinear(const Instr& root, size_t result_index, Scalar index, Element value);
  // The u64 state words of an rng-bit-generator: key, low counter, high counter (Philox only). A
  // state of two words has no high counter: the key is returned as the third word, too, and serves
  // as the upper half of the counter, as in the interpreter.
  RandomStateWords RandomState(const Instr& instr);
  // The current value of an element of a root; only for roots that are updated in place (scatter).
  Element ReadRoot(const Instr& root, Scalar index);

  // While set, bounds checks along the last dimension are omitted for the taps of reduce-windows
  // (window.h) whose result has these dimensions, at results whose last coordinate is the SSA value
  // `coordinate`: the caller knows that these taps are in bounds (InteriorOfWindows). A call
  // replaces the previous one; AssumeTapsInBounds({}, {}) ends it. Drops all memoized values.
  void AssumeTapsInBounds(Scalar coordinate, const Dims& dims);
  // Whether the taps of a reduce-window along dimension d are assumed to be in bounds there.
  bool AssumesTapInBounds(const Instr& window, size_t d, Scalar coordinate) const;

  // Why the region cannot be a kernel; empty if there was no failure. Values emitted after a
  // failure are meaningless.
  const std::string& failure() const { return failure_; }
  void Fail(const std::string& why);

 private:
  // Of one result: the only element that may be used.
  struct BoundElement {
    size_t result_index = 0;
    std::vector<ValueId> at;
    Element value;
  };
  // The state of OverrideLoad.
  struct Provided {
    ValueId index{};
    Element value;
    bool load_otherwise = false;
  };
  // What the emitter knows about an instruction: one lookup per element instead of one per fact.
  struct InstrState {
    const Instr* instr = nullptr;
    bool in_region = false;
    std::optional<ArrayId> input;         // the array of an input
    std::optional<size_t> outputs_begin;  // of a root: its range in outputs_
    std::vector<BoundElement> bound;
    std::optional<Provided> provided;
    std::shared_ptr<ElementSource> source;
  };
  // A row-major index that was emitted last for these coordinates.
  struct LinearizedIndex {
    std::vector<ValueId> at;
    Dims dims;
    Scalar index;
  };

  // The state of an instruction; null if nothing is known about it. Valid until the next change.
  const InstrState* Known(const Instr& instr) const;
  InstrState& StateOf(const Instr& instr);
  size_t SlotOf(const Instr& instr) const;
  void GrowSlots();
  bool IsInRegion(const Instr& instr) const {
    const InstrState* state = Known(instr);
    return state != nullptr && state->in_region;
  }
  ArrayId OutputOf(const Instr& root, size_t result_index) const;
  // Linearized (above). All inputs of the same dimensions are mostly read at the same coordinates.
  Scalar LinearIndexOf(const Coordinates& at, const Dims& dims);
  ArrayId AddArgument(const Instr& instr, size_t result_index, const Shape& shape, Access access);
  // Emits an element that is neither overridden nor memoized.
  Element Compute(const Instr& instr, const Coordinates& at, size_t result_index);
  // Loads the element of an input at a linear index.
  Element LoadLinear(const Instr& instr, Scalar index);
  Element Immediate(const Instr& instr);
  Element Operand(const Instr& instr, size_t i, const Coordinates& at);
  // c + exp(x) with a constant c >= 2^-60, with a cheaper exponential (formulas::ExpOfTerm);
  // nullopt if the instruction is not such a sum.
  std::optional<Element> TryConstantPlusExp(const Instr& instr, const Coordinates& at);
  Element Elementwise(const Instr& instr, const Coordinates& at);
  Element Reshape(const Instr& instr, const Coordinates& at);
  Element Iota(const Instr& instr, const Coordinates& at);
  Element Pad(const Instr& instr, const Coordinates& at);
  Element Concatenate(const Instr& instr, const Coordinates& at);
  Element DynamicUpdateSlice(const Instr& instr, const Coordinates& at);
  Element BitcastConvert(const Instr& instr, const Coordinates& at);
  Element Map(const Instr& instr, const Coordinates& at);
  Element ReduceWindow(const Instr& instr, const Coordinates& at, size_t result_index);
  Element RandomBits(const Instr& instr, const Coordinates& at);
  // The coordinates at which an op that moves elements reads an operand (analysis/index_map.h). The
  // variables of the map are the coordinates of the result. `inside` may be null if no index can be
  // out of bounds.
  Coordinates OperandCoordinates(const Instr& instr, const IndexMap& map,
                                 const Coordinates& variables, Scalar* inside = nullptr);
  Scalar CoordinateOf(const Instr& instr, const IndexMap& map, const IndexExpr& expr,
                      const Coordinates& variables, Scalar* inside);
  // A start index, adjusted to [0, last].
  Scalar StartIndex(const Instr& instr, const RunTimeStart& start, Coordinates variables);
  Element Zero(ElementType type);

  KernelBuilder& b_;
  std::vector<InstrState> states_;
  std::vector<uint32_t> slots_;  // hash table of numbers of states; the size is a power of two
  std::vector<ArrayId> outputs_;
  ElementMemo memo_;
  std::array<LinearizedIndex, 2> linearized_;
  size_t next_linearized_ = 0;   // which of them to replace
  Scalar in_bounds_coordinate_;  // coordinate passed to AssumeTapsInBounds
  Dims in_bounds_dims_;
  std::string failure_;
  int recursion_depth_ = 0;  // of the recursion; bounded by kMaxDepth in element.cc
};

}  // namespace tokamak
