#include "random/compare.h"

#include <cmath>

#include <fmt/format.h>

#include "driver/compare_arrays.h"

namespace tokamak::fuzz {
namespace {

bool Close(ElementType type, double a, double b, const Closeness& closeness) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return !closeness.zero_signs || std::signbit(a) == std::signbit(b);
  if (closeness.ulps == 0 || std::isinf(a) || std::isinf(b)) return false;
  return UlpsBetween(type, a, b) <= closeness.ulps;
}

template <typename T>
bool CloseElements(ElementType type, const T& a, const T& b, const Closeness& closeness) {
  if constexpr (std::is_same_v<T, double>) {
    return Close(type, a, b, closeness);
  } else if constexpr (std::is_same_v<T, Complex>) {
    ElementType part = RealPartOf(type);
    return Close(part, a.real(), b.real(), closeness) && Close(part, a.imag(), b.imag(), closeness);
  } else {
    return a == b;
  }
}

template <typename T>
std::string ElementWords(const T& x) {
  if constexpr (std::is_same_v<T, Complex>) {
    return fmt::format("({}, {})", x.real(), x.imag());
  } else {
    return fmt::format("{}", x);
  }
}

std::string DifferenceOfValue(const std::string& name, const Value& before, const Value& after,
                              const Closeness& closeness) {
  if (!Compatible(before.shape(), after.shape()))
    return fmt::format("{} was {}, is {}", name, ToString(before.shape()), ToString(after.shape()));
  if (before.shape().IsTuple()) {
    for (size_t i = 0; i < before.elements().size(); ++i) {
      std::string part = DifferenceOfValue(fmt::format("{}.{}", name, i), before.elements()[i],
                                           after.elements()[i], closeness);
      if (!part.empty()) return part;
    }
    return {};
  }
  if (!before.shape().IsArray()) return {};
  return DispatchStorage(before.type(), [&]<typename T>() -> std::string {
    std::span<const T> a = before.Data<T>(), b = after.Data<T>();
    for (size_t i = 0; i < a.size(); ++i)
      if (!CloseElements<T>(before.type(), a[i], b[i], closeness))
        return fmt::format("element {} of {}, {}, was {}, is {}", i, name, ToString(before.shape()),
                           ElementWords<T>(a[i]), ElementWords<T>(b[i]));
    return {};
  });
}

}  // namespace

std::string DifferenceOf(const std::vector<Value>& before, const std::vector<Value>& after,
                         const Closeness& closeness) {
  if (before.size() != after.size())
    return fmt::format("there were {} results, there are {}", before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    std::string difference =
        DifferenceOfValue(fmt::format("out_{}", i), before[i], after[i], closeness);
    if (!difference.empty()) return difference;
  }
  return {};
}

}  // namespace tokamak::fuzz
