#include "interp/results.h"

namespace tokamak {

Error RunError(ErrorCode code, const Instr& instr, const std::string& what) {
  return MakeError(code, std::string(instr.info().name) + ": " + what, SpanOf(instr));
}

Status CheckFits(const Instr& instr, ElementType type, const Dims& dims) {
  std::optional<int64_t> count = CheckedElementCount(dims);
  for (int64_t d : dims) {
    if (d < 0) {
      return RunError(ErrorCode::kBadRunTimeShape, instr, "a dimension of its result is not known");
    }
  }
  int64_t width = DispatchStorage(
      type, []<typename T>() -> int64_t { return static_cast<int64_t>(sizeof(T)); });
  if (!count || *count > kMaxTensorBytes / width) {
    return RunError(ErrorCode::kOutOfMemory, instr,
                    ToString(Shape::Array(type, dims)) + " does not fit into " +
                        std::to_string(kMaxTensorBytes >> 20) + " MiB");
  }
  return Ok();
}

namespace {

template <typename To, typename From>
To ConvertElement(From from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else if constexpr (std::is_same_v<To, std::complex<float>>) {
    if constexpr (std::is_same_v<From, Complex>)
      return std::complex<float>(from);
    else
      return std::complex<float>(static_cast<float>(from), 0);
  } else if constexpr (std::is_same_v<To, Complex>) {
    return Complex(static_cast<double>(from), 0);
  } else if constexpr (std::is_same_v<From, Complex>) {
    return static_cast<To>(from.real());
  } else {
    return static_cast<To>(from);
  }
}

}  // namespace

template <typename T>
std::vector<T> ElementsAs(const Value& value) {
  return DispatchStorage(value.type(), [&]<typename From>() {
    std::span<const From> from = value.Data<From>();
    std::vector<T> to(from.size());
    for (size_t i = 0; i < from.size(); ++i) to[i] = ConvertElement<T>(from[i]);
    return to;
  });
}
template std::vector<uint8_t> ElementsAs(const Value&);
template std::vector<int64_t> ElementsAs(const Value&);
template std::vector<uint64_t> ElementsAs(const Value&);
template std::vector<double> ElementsAs(const Value&);
template std::vector<Complex> ElementsAs(const Value&);
template std::vector<float> ElementsAs(const Value&);
template std::vector<std::complex<float>> ElementsAs(const Value&);

Dims IntsOf(const Value& value) {
  Dims ints(static_cast<size_t>(value.ElementCount()));
  for (size_t i = 0; i < ints.size(); ++i) ints[i] = value.IntAt(static_cast<int64_t>(i));
  return ints;
}

}  // namespace tokamak
