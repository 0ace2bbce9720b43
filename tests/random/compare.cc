#include "random/compare.h"

#include <cmath>

#include <fmt/format.h>

namespace tokamak::fuzz {
namespace {

template <typename T>
bool IsSame(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, double>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return a == b && std::signbit(a) == std::signbit(b);
  } else if constexpr (std::is_same_v<T, Complex>) {
    return IsSame(a.real(), b.real()) && IsSame(a.imag(), b.imag());
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

std::string DifferenceOfValue(const std::string& name, const Value& before, const Value& after) {
  if (!Compatible(before.shape(), after.shape()))
    return fmt::format("{} was {}, is {}", name, ToString(before.shape()), ToString(after.shape()));
  if (before.shape().IsTuple()) {
    for (size_t i = 0; i < before.elements().size(); ++i) {
      std::string part = DifferenceOfValue(fmt::format("{}.{}", name, i), before.elements()[i],
                                           after.elements()[i]);
      if (!part.empty()) return part;
    }
    return {};
  }
  if (!before.shape().IsArray()) return {};
  return DispatchStorage(before.type(), [&]<typename T>() -> std::string {
    std::span<const T> a = before.Data<T>(), b = after.Data<T>();
    for (size_t i = 0; i < a.size(); ++i)
      if (!IsSame<T>(a[i], b[i]))
        return fmt::format("element {} of {}, {}, was {}, is {}", i, name, ToString(before.shape()),
                           ElementWords<T>(a[i]), ElementWords<T>(b[i]));
    return {};
  });
}

}  // namespace

std::string DifferenceOf(const std::vector<Value>& before, const std::vector<Value>& after) {
  if (before.size() != after.size())
    return fmt::format("there were {} results, there are {}", before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    std::string difference = DifferenceOfValue(fmt::format("out_{}", i), before[i], after[i]);
    if (!difference.empty()) return difference;
  }
  return {};
}

}  // namespace tokamak::fuzz
