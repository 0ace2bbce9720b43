#pragma once

// What the families share: sizes on the stack, faults in one style, and the
// requirements that many ops make. A shape that agrees with the written one is
// never built anew: the written one is returned.

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "ir/infer.h"
#include "support/limits.h"

namespace tokamak {

// Dimensions being computed. Too many are remembered, not stored.
class Sizes {
 public:
  Sizes() {}  // leaves the storage as it is: this is on every path
  explicit Sizes(const Dims& dims) : Sizes() { Append(dims); }
  void push_back(int64_t size) {
    if (count_ < kCapacity) sizes_[count_] = size;
    ++count_;
  }
  void Append(std::span<const int64_t> sizes) {
    for (int64_t size : sizes) push_back(size);
  }
  bool fits() const { return count_ <= static_cast<size_t>(kMaxRank); }
  size_t size() const { return count_; }
  int64_t& operator[](size_t i) { return sizes_[i]; }
  int64_t operator[](size_t i) const { return sizes_[i]; }
  std::span<const int64_t> span() const {
    return {sizes_, count_ < kCapacity ? count_ : kCapacity};
  }

 private:
  static constexpr size_t kCapacity = 3 * kMaxRank;
  size_t count_ = 0;
  int64_t sizes_[kCapacity];
};

// ---- faults ----

[[gnu::cold]] Error MakeFault(const InferInput& in, ErrorCode code, std::string text);

template <typename... Args>
[[gnu::cold]] Error Fault(const InferInput& in, ErrorCode code, fmt::format_string<Args...> format,
                          Args&&... args) {
  return MakeFault(in, code, fmt::format(format, std::forward<Args>(args)...));
}

std::string ListText(std::span<const int64_t> list);  // "{0,1}"; '?' for kDynamic
std::string SizeText(int64_t size);                   // "4" or "?"

// ---- sizes ----

// Equal, or one is unknown.
inline bool SizesAgree(int64_t a, int64_t b) {
  return a == b || a == kDynamic || b == kDynamic;
}
// The known one of two that agree.
inline int64_t KnownSize(int64_t a, int64_t b) {
  return a == kDynamic ? b : a;
}
// Whether the dimensions agree; fills in unknown ones of `dims`.
bool UnifySizes(Sizes& dims, const Dims& other);
// a + b * c, or nothing when it passes the limits or is negative.
bool MultiplyAdd(int64_t a, int64_t b, int64_t c, int64_t* result);

bool Has(const Dims& list, int64_t value);

// ---- requirements ----

Status RequireOperands(const InferInput& in, size_t least, size_t most);
Status RequireCalled(const InferInput& in, size_t count);
Status RequireArray(const InferInput& in, size_t operand);
Status RequireArrays(const InferInput& in);
Status RequireToken(const InferInput& in, size_t operand);
// An array without dimensions.
Status RequireScalar(const InferInput& in, size_t operand, ErrorCode code);
Status RequireIntegers(const InferInput& in, size_t operand, ErrorCode code);
// 0 <= dimension < rank.
Status RequireDimension(const InferInput& in, const char* name, int64_t dimension, int64_t rank);
// Each in range and named once.
Status RequireUnique(const InferInput& in, const char* name, const Dims& dims, int64_t rank);
Status RequireAscending(const InferInput& in, const char* name, const Dims& dims);
Status RequirePermutation(const InferInput& in, const char* name, const Dims& dims, int64_t rank);
// One entry per dimension.
Status RequireCount(const InferInput& in, const char* name, size_t count, int64_t rank);
// The row's types; of a quantized array what it expresses counts.
Status RequireTypes(const InferInput& in, size_t operand);
Status RequireSameType(const InferInput& in, size_t a, size_t b);
Status RequirePlain(const InferInput& in, size_t operand);  // not quantized
// The first `count` operands (one or more) are arrays of the same dimensions, which `dims` gets.
Status RequireSameSizes(const InferInput& in, size_t count, Sizes& dims);
Status RequireSizeVector(const InferInput& in, size_t operand, int64_t entries);

// ---- computations that combine scalars ----

// A reduction's body: 2n scalars (and captures) to n; `inputs` and `inits` are
// the types that go in. `results` (n entries) gets the types that come out.
Status RequireReducer(const InferInput& in, size_t called, std::span<const Shape> inputs,
                      std::span<const Shape> inits, ElementType* results);
// Parameters after the first `count` are the captures.
Status RequireCaptures(const InferInput& in, const Computation& computation, size_t count);
Status RequireBodyParameter(const InferInput& in, const Computation& computation, size_t number,
                            ElementType type);
// What a value of type `from` can be passed as: the same kind of numbers, at least as wide
// (reals of any width).
bool CanPassAs(ElementType from, ElementType to);
// How a fault calls it: regions of StableHLO have no names.
std::string NameOf(const Computation& computation);
const Shape& RootShape(const Computation& computation);
// The operands that are not captures.
size_t OwnOperands(const InferInput& in);

// ---- results ----

// The result is an array of this type and these dimensions. `like` gives
// quantization and bounds when nothing is written; a written quantization is
// taken where `like` is quantized.
Result<Shape> GiveArray(const InferInput& in, ElementType type, const Sizes& dims,
                        const Shape* like = nullptr);
// Checks array `written` (part of the written shape, or null) alike.
Result<Shape> GivePart(const InferInput& in, const Shape* written, ElementType type,
                       const Sizes& dims, const Shape* like = nullptr);
// The result is exactly this shape (layouts aside).
Result<Shape> GiveShape(const InferInput& in, const Shape& shape);
// The i-th of `count` parts of the written shape, which must then be a tuple
// when count is not 1. Null when nothing is written.
Result<const Shape*> WrittenPart(const InferInput& in, size_t i, size_t count);
// One part is the result itself, several are its tuple. When the written shape is made of these
// very parts, it is returned.
Result<Shape> GiveParts(const InferInput& in, std::vector<Shape> parts);
// For ops whose shape is part of the program.
Result<const Shape*> RequireWritten(const InferInput& in);
Result<const Shape*> RequireWrittenArray(const InferInput& in);

}  // namespace tokamak
