#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "gen/region.h"
#include "kernel/builder.h"
#include "kernel/formulas.h"

namespace tokamak {

// One index per dimension, each in range.
using Coordinates = std::vector<Scalar>;

// Row-major: the coordinates of element `linear`, and the element at coordinates.
Coordinates Delinearized(KernelBuilder& b, Scalar linear, const Dims& dims);
Scalar Linearized(KernelBuilder& b, const Coordinates& at, const Dims& dims);

// Whether the element emitter has code for the instruction; else why not, in words. Looks at the
// instruction and the shapes of its operands alone.
std::optional<std::string> WhyNoElement(const Instr& instr);

// A scalar computation (a reducer, a map) applied to values. Narrow floats (bf16, f16, f8) are
// f32 throughout when `wide`, as a reduce keeps them: its result is rounded by the caller.
// Nothing when something in it has no formula. `dims`: values of these dimensions are computed
// element by element, and this is one of them.
std::optional<std::vector<Element>> ApplyBody(KernelBuilder& b, const Computation& body,
                                              std::span<const Element> arguments, bool wide,
                                              const Dims* dims = nullptr);
// The same of one instruction in it.
std::optional<Element> ApplyBodyTo(KernelBuilder& b, const Computation& body, const Instr& instr,
                                   std::span<const Element> arguments);
// The type in which a reducer keeps elements of `type`.
ElementType WideType(ElementType type);

// Elements that somebody else makes: of part `part` of an instruction, or of parameter `part`.
class ElementGiver {
 public:
  virtual ~ElementGiver() = default;
  virtual Element At(const Coordinates& at, size_t part) = 0;
};

// What a kernel's text calls an array that an instruction makes.
std::string NameOfArgument(const Instr& instr, size_t part);

// Code for single elements of the values of a region: each value is computed where it is needed,
// from elements of its operands, down to loads of inputs. Equal elements are one value.
class ElementEmitter {
 public:
  // Makes the arguments of the kernel: inputs, then (the parts of) roots.
  ElementEmitter(KernelBuilder& b, const Region& region);

  // The element of an array at coordinates. Part `part` of an instruction with several results.
  Element At(const Instr& instr, const Coordinates& at, size_t part = 0);
  // From here on At(instr, at, part) is this value, and other elements of the instruction are a
  // fault: what a reduction gives is known for the row at hand alone.
  void Bind(const Instr& instr, size_t part, const Coordinates& at, Element value);
  // The element at these coordinates was computed already; others are as ever.
  void Remember(const Instr& instr, const Coordinates& at, Element value);
  // Values that were made so far are made anew where they are needed: they may hold what was read
  // in a block that is closed.
  void Forget() { known_.clear(); }
  // From here on, the element of an input at `index` (row-major) is not loaded: it is this value.
  // Others are a fault, or loaded as ever where some of the region reads the input otherwise.
  void Provide(const Instr& input, Scalar index, Element value, bool read_otherwise = false);
  // From here on, elements of the instruction are what `giver` makes.
  void Give(const Instr& instr, std::shared_ptr<ElementGiver> giver);
  // The element of an input, loaded as it is stored.
  Scalar LoadStored(const Instr& input, Scalar index);
  // Where a dynamic-update-slice writes the element of its update at coordinates.
  Coordinates UpdatePlace(const Instr& instr, const Coordinates& at);
  // Writes an element of a root.
  void Store(const Instr& root, size_t part, const Coordinates& at, Element value);
  ArrayId OutputOf(const Instr& root) const { return outputs_.at({&root, 0}); }
  void StoreLinear(const Instr& root, size_t part, Scalar index, Element value);
  // The words of the state that random bits are made of; of two words the first is the third, too.
  std::array<Scalar, 3> RandomState(const Instr& instr);
  // An element of a root as it is now; only of roots that are combined into (scatter).
  Element ReadRoot(const Instr& root, Scalar index);

  // From here on, taps of windows of arrays with these dimensions lie inside along the last one
  // where its coordinate is this (window.h); of another coordinate, or none, nothing is known.
  void AssumeInside(Scalar coordinate, const Dims& dims);
  bool IsAssumedInside(const Instr& window, size_t d, Scalar coordinate) const;

  // Why the region cannot be a kernel, in words; "" so far it can. Values after a fault mean
  // nothing.
  const std::string& fault() const { return fault_; }
  void Fail(const std::string& why);

 private:
  struct Key {
    const Instr* instr;
    size_t part;
    std::vector<ValueId> at;
    auto operator<=>(const Key&) const = default;
  };
  struct Bound {
    std::vector<ValueId> at;
    Element value;
  };

  ArrayId AddArgument(const Instr& instr, size_t part, const Shape& shape, Access access);
  Element Make(const Instr& instr, const Coordinates& at, size_t part);
  // An input, by the number of its element.
  Element LoadLinear(const Instr& instr, Scalar index);
  Element Immediate(const Instr& instr);
  Element Operand(const Instr& instr, size_t i, const Coordinates& at);
  std::optional<Element> SumWithExp(const Instr& instr, const Coordinates& at);
  Element Elementwise(const Instr& instr, const Coordinates& at);
  Element Reshape(const Instr& instr, const Coordinates& at);
  Element Iota(const Instr& instr, const Coordinates& at);
  Element Pad(const Instr& instr, const Coordinates& at);
  Element Concatenate(const Instr& instr, const Coordinates& at);
  Element Gather(const Instr& instr, const Coordinates& at);
  Element DynamicSlice(const Instr& instr, const Coordinates& at);
  Element DynamicUpdateSlice(const Instr& instr, const Coordinates& at);
  Element BitcastConvert(const Instr& instr, const Coordinates& at);
  Element Mapped(const Instr& instr, const Coordinates& at);
  Element ReduceWindow(const Instr& instr, const Coordinates& at, size_t part);
  Element TorchIndexSelect(const Instr& instr, const Coordinates& at);
  Element RandomBits(const Instr& instr, const Coordinates& at);
  Scalar ClampedStart(const Instr& index, const Coordinates& at, int64_t last);
  Scalar Start(const Instr& instr, size_t first, size_t d, int64_t last);
  Element ChooseElement(Scalar condition, Element yes, Element no);
  Element Zero(ElementType type);

  KernelBuilder& b_;
  std::unordered_map<const Instr*, ArrayId> inputs_;
  std::map<std::pair<const Instr*, size_t>, ArrayId> outputs_;
  std::unordered_map<const Instr*, bool> inside_;
  std::map<std::pair<const Instr*, size_t>, Bound> bound_;
  std::map<Key, Element> known_;
  struct Provided {
    ValueId index{};
    Element value;
    bool read_otherwise = false;
  };
  std::unordered_map<const Instr*, Provided> provided_;
  std::unordered_map<const Instr*, std::shared_ptr<ElementGiver>> givers_;
  Scalar assumed_;  // of AssumeInside
  Dims assumed_dims_;
  std::string fault_;
  int depth_ = 0;
};

}  // namespace tokamak
