#pragma once

// Helpers shared by the inference functions: sizes on the stack, uniform error messages, and
// requirements common to many ops. If the inferred shape agrees with the written one, the written
// one is returned, so no shape is allocated.

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "ir/infer.h"
#include "support/limits.h"

namespace tokamak {

// Dimensions under construction. Exceeding the capacity is recorded; the excess is not stored.
class Sizes {
 public:
  Sizes() {}  // leaves the storage uninitialised: this is on every path
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

// ---- errors ----

[[gnu::cold]] Error MakeInferErrorText(const InferInput& in, ErrorCode code, std::string text);

template <typename... Args>
[[gnu::cold]] Error MakeInferError(const InferInput& in, ErrorCode code,
                                   fmt::format_string<Args...> format, Args&&... args) {
  return MakeInferErrorText(in, code, fmt::format(format, std::forward<Args>(args)...));
}

std::string ListText(std::span<const int64_t> list);  // "{0,1}"; '?' for kDynamic
std::string SizeText(int64_t size);                   // "4" or "?"

// ---- sizes ----

// Equal, or one is unknown.
inline bool SizesAgree(int64_t a, int64_t b) {
  return a == b || a == kDynamic || b == kDynamic;
}
// The known one of two sizes that agree.
inline int64_t KnownSize(int64_t a, int64_t b) {
  return a == kDynamic ? b : a;
}
// Whether the dimensions agree; fills in unknown ones of `dims`.
bool UnifySizes(Sizes& dims, const Dims& other);
// a + b * c; false if it is negative or exceeds the limits.
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
// Each is in range and appears once.
Status RequireUnique(const InferInput& in, const char* name, const Dims& dims, int64_t rank);
Status RequireAscending(const InferInput& in, const char* name, const Dims& dims);
Status RequirePermutation(const InferInput& in, const char* name, const Dims& dims, int64_t rank);
// One entry per dimension.
Status RequireCount(const InferInput& in, const char* name, size_t count, int64_t rank);
// Requires an element type from the op's row; for a quantized array the expressed type counts.
Status RequireTypes(const InferInput& in, size_t operand);
Status RequireSameType(const InferInput& in, size_t a, size_t b);
Status RequirePlain(const InferInput& in, size_t operand);  // not quantized
// Requires the first `count` operands (at least one) to be arrays with the same dimensions, which
// are stored in `dims`.
Status RequireSameSizes(const InferInput& in, size_t count, Sizes& dims);
Status RequireSizeVector(const InferInput& in, size_t operand, int64_t entries);

// ---- computations that combine scalars ----

// Checks a reducer: 2n scalars (and captures) to n. `inputs` and `inits` are the argument types.
// `results` (n entries) receives the result types.
Status RequireReducer(const InferInput& in, size_t called, std::span<const Shape> inputs,
                      std::span<const Shape> inits, ElementType* results);
// Parameters after the first `count` are the captures.
Status RequireCaptures(const InferInput& in, const Computation& computation, size_t count);
Status RequireBodyParameter(const InferInput& in, const Computation& computation, size_t number,
                            ElementType type);
// Whether a value of type `from` can be passed as `to`: the same kind of number, at least as wide
// (floats: any width).
bool CanPassAs(ElementType from, ElementType to);
// The name used in error messages; StableHLO regions have no names.
std::string NameOf(const Computation& computation);
const Shape& RootShape(const Computation& computation);
// The operands that are not captures.
size_t OwnOperands(const InferInput& in);

// ---- results ----

// The result is an array with this type and these dimensions. `like` supplies quantization and
// bounds if no shape is written; a written quantization is accepted if `like` is quantized.
Result<Shape> InferArray(const InferInput& in, ElementType type, const Sizes& dims,
                         const Shape* like = nullptr);
// Like InferArray, but checks against `written` (an element of the written shape, or null).
Result<Shape> InferResult(const InferInput& in, const Shape* written, ElementType type,
                          const Sizes& dims, const Shape* like = nullptr);
// The result is exactly this shape (except for layouts).
Result<Shape> InferShape(const InferInput& in, const Shape& shape);
// Element i of `count` results in the written shape, which must be a tuple if count is not 1. Null
// if no shape is written.
Result<const Shape*> WrittenPart(const InferInput& in, size_t i, size_t count);
// One part is the result itself; several form a tuple. If the written shape consists of exactly
// these parts, it is returned.
Result<Shape> InferResults(const InferInput& in, std::vector<Shape> parts);
// For ops whose shape is part of the program; fails if it is missing.
Result<const Shape*> RequireWritten(const InferInput& in);
Result<const Shape*> RequireWrittenArray(const InferInput& in);

}  // namespace tokamak
