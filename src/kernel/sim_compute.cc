#include <bit>
#include <cmath>
#include <type_traits>

#include "kernel/sim_program.h"

// The primitives over slots, one function per primitive and type. Combinations without a table
// entry use EvaluatePrim; unit tests compare both.

namespace tokamak {
namespace {

template <typename T>
T Get(Bits bits) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(bits);
  } else {
    return static_cast<T>(bits);
  }
}

template <typename T>
Bits Put(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<Bits>(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? 1 : 0;
  } else {
    return static_cast<std::make_unsigned_t<T>>(value);
  }
}

template <auto kFunction>
void Each1(const SimOp& op, Bits* slots) {
  const Bits* a = slots + op.a.at;
  Bits* to = slots + op.to;
  for (uint32_t i = 0; i < op.lanes; ++i) to[i] = kFunction(a[i * op.a.step]);
}

template <auto kFunction>
void Each2(const SimOp& op, Bits* slots) {
  const Bits *a = slots + op.a.at, *b = slots + op.b.at;
  Bits* to = slots + op.to;
  for (uint32_t i = 0; i < op.lanes; ++i) to[i] = kFunction(a[i * op.a.step], b[i * op.b.step]);
}

template <auto kFunction>
void Each3(const SimOp& op, Bits* slots) {
  const Bits *a = slots + op.a.at, *b = slots + op.b.at, *c = slots + op.c.at;
  Bits* to = slots + op.to;
  for (uint32_t i = 0; i < op.lanes; ++i)
    to[i] = kFunction(a[i * op.a.step], b[i * op.b.step], c[i * op.c.step]);
}

// Any primitive. An unspecified result becomes a value that no test expects.
void Any(const SimOp& op, Bits* slots) {
  constexpr Bits kOpen = 0xa5c396e17b2d84f0u;
  int bits = InfoOf(op.type).bits;
  for (uint32_t i = 0; i < op.lanes; ++i) {
    Bits operands[] = {slots[op.a.at + i * op.a.step], slots[op.b.at + i * op.b.step],
                       slots[op.c.at + i * op.c.step]};
    std::optional<Bits> result = EvaluatePrim(op.prim, op.type, op.from, operands);
    slots[op.to + i] = result.value_or(kOpen >> (64 - bits));
  }
}

template <typename T>
bool Less(Bits x, Bits y) {
  return Get<T>(x) < Get<T>(y);
}

// ---- integers and floats

template <typename T>
SimCompute Compared(Prim prim) {
  switch (prim) {
    case Prim::kMin:
      return Each2<[](Bits x, Bits y) { return Less<T>(x, y) ? x : y; }>;
    case Prim::kMax:
      return Each2<[](Bits x, Bits y) { return Less<T>(y, x) ? x : y; }>;
    case Prim::kLt:
      return Each2<[](Bits x, Bits y) { return Put(Less<T>(x, y)); }>;
    case Prim::kLe:
      return Each2<[](Bits x, Bits y) { return Put(Get<T>(x) <= Get<T>(y)); }>;
    case Prim::kEq:
      return Each2<[](Bits x, Bits y) { return Put(Get<T>(x) == Get<T>(y)); }>;
    case Prim::kNe:
      return Each2<[](Bits x, Bits y) { return Put(Get<T>(x) != Get<T>(y)); }>;
    default:
      return nullptr;
  }
}

template <typename T>
SimCompute OfInteger(Prim prim) {
  switch (prim) {
    case Prim::kAdd:
      return Each2<[](Bits x, Bits y) { return Put(static_cast<T>(x + y)); }>;
    case Prim::kSub:
      return Each2<[](Bits x, Bits y) { return Put(static_cast<T>(x - y)); }>;
    case Prim::kMul:
      return Each2<[](Bits x, Bits y) { return Put(static_cast<T>(x * y)); }>;
    case Prim::kAnd:
      return Each2<[](Bits x, Bits y) { return x & y; }>;
    case Prim::kOr:
      return Each2<[](Bits x, Bits y) { return x | y; }>;
    case Prim::kXor:
      return Each2<[](Bits x, Bits y) { return x ^ y; }>;
    default:
      return Compared<T>(prim);
  }
}

template <typename T>
SimCompute OfFloat(Prim prim) {
  switch (prim) {
    case Prim::kAdd:
      return Each2<[](Bits x, Bits y) { return Put<T>(Get<T>(x) + Get<T>(y)); }>;
    case Prim::kSub:
      return Each2<[](Bits x, Bits y) { return Put<T>(Get<T>(x) - Get<T>(y)); }>;
    case Prim::kMul:
      return Each2<[](Bits x, Bits y) { return Put<T>(Get<T>(x) * Get<T>(y)); }>;
    case Prim::kDiv:
      return Each2<[](Bits x, Bits y) { return Put<T>(Get<T>(x) / Get<T>(y)); }>;
    case Prim::kFma:
      return Each3<[](Bits x, Bits y, Bits z) {
        return Put<T>(std::fma(Get<T>(x), Get<T>(y), Get<T>(z)));
      }>;
    case Prim::kSqrt:
      return Each1<[](Bits x) { return Put<T>(std::sqrt(Get<T>(x))); }>;
    case Prim::kFloor:
      return Each1<[](Bits x) { return Put<T>(std::floor(Get<T>(x))); }>;
    case Prim::kCeil:
      return Each1<[](Bits x) { return Put<T>(std::ceil(Get<T>(x))); }>;
    case Prim::kTrunc:
      return Each1<[](Bits x) { return Put<T>(std::trunc(Get<T>(x))); }>;
    case Prim::kRoundEven:
      return Each1<[](Bits x) { return Put<T>(std::nearbyint(Get<T>(x))); }>;
    default:
      return Compared<T>(prim);
  }
}

SimCompute OfType(Prim prim, ScalarType type) {
  switch (type) {
    case ScalarType::kS32:
      return OfInteger<int32_t>(prim);
    case ScalarType::kS64:
    case ScalarType::kIndex:
      return OfInteger<int64_t>(prim);
    case ScalarType::kU32:
      return OfInteger<uint32_t>(prim);
    case ScalarType::kU64:
      return OfInteger<uint64_t>(prim);
    case ScalarType::kF32:
      return OfFloat<float>(prim);
    case ScalarType::kF64:
      return OfFloat<double>(prim);
    default:
      return nullptr;
  }
}

// ---- between types

template <typename To, typename From>
Bits Converted(Bits x) {
  return Put(static_cast<To>(Get<From>(x)));
}

SimCompute Converting(ScalarType to, ScalarType from) {
  bool from_32 = from == ScalarType::kS32;
  bool from_64 = from == ScalarType::kS64 || from == ScalarType::kIndex;
  switch (to) {
    case ScalarType::kF64:
      if (from == ScalarType::kF32) return Each1<Converted<double, float>>;
      break;
    case ScalarType::kF32:
      if (from == ScalarType::kF64) return Each1<Converted<float, double>>;
      if (from_32) return Each1<Converted<float, int32_t>>;
      if (from_64) return Each1<Converted<float, int64_t>>;
      if (from == ScalarType::kBF16) return Each1<[](Bits x) { return x << 16; }>;
      break;
    case ScalarType::kIndex:
    case ScalarType::kS64:
      if (from_32) return Each1<Converted<int64_t, int32_t>>;
      if (from_64) return Each1<[](Bits x) { return x; }>;
      break;
    case ScalarType::kS32:
      if (from_64) return Each1<Converted<int32_t, int64_t>>;
      break;
    default:
      break;
  }
  return nullptr;
}

}  // namespace

SimCompute ComputeOf(Prim prim, ScalarType type, ScalarType from) {
  SimCompute found = nullptr;
  if (prim == Prim::kSelect) {
    found = Each3<[](Bits c, Bits x, Bits y) { return c != 0 ? x : y; }>;
  } else if (prim == Prim::kBitcast) {
    found = Each1<[](Bits x) { return x; }>;
  } else if (prim == Prim::kConvert) {
    found = Converting(type, from);
  } else {
    found = OfType(prim, from);
  }
  return found != nullptr ? found : Any;
}

}  // namespace tokamak
