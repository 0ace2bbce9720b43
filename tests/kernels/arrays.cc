#include "kernels/arrays.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "support/splitmix.h"

namespace tokamak {
namespace {

Error Bad(const std::string& what) {
  return MakeError(ErrorCode::kUsage, "test: " + what);
}

void Put(std::vector<uint64_t>& bytes, ScalarType type, int64_t i, Bits bits) {
  auto size = static_cast<size_t>(BytesOf(type));
  std::memcpy(reinterpret_cast<char*>(bytes.data()) + static_cast<size_t>(i) * size, &bits, size);
}

Bits Get(const std::vector<uint64_t>& bytes, ScalarType type, int64_t i) {
  auto size = static_cast<size_t>(BytesOf(type));
  Bits bits = 0;
  std::memcpy(&bits, reinterpret_cast<const char*>(bytes.data()) + static_cast<size_t>(i) * size,
              size);
  return bits;
}

std::vector<double> Listed(const std::string& text) {
  std::vector<double> values;
  for (const char* at = text.c_str(); *at != 0;) {
    char* end = nullptr;
    values.push_back(std::strtod(at, &end));
    if (end == at) return {};
    at = *end == ',' ? end + 1 : end;
  }
  return values;
}

}  // namespace

Status TestArrays::Fill(const Kernel& kernel, const std::map<std::string, std::string>& given) {
  for (size_t i = 0; i < kernel.ArgumentCount(); ++i) {
    const Array& array = kernel.arrays[i];
    auto found = given.find(array.name);
    std::string how = found == given.end() ? "" : found->second;
    memory_.push_back(i);
    elements_.push_back(array.size);
    bytes_.emplace_back(static_cast<size_t>(array.size) + 1);
    if (how.starts_with("@")) {
      for (size_t k = 0; k < i; ++k)
        if (kernel.arrays[k].name == how.substr(1)) memory_[i] = memory_[k];
      if (memory_[i] == i) return Bad("no argument above is called " + how.substr(1));
      continue;
    }
    std::vector<double> list =
        how.empty() || std::isalpha(how[0]) != 0 ? std::vector<double>{} : Listed(how);
    if (!list.empty() && static_cast<int64_t>(list.size()) != array.size)
      return Bad(
          fmt::format("{} values for {}, which has {}", list.size(), array.name, array.size));
    SplitMix64 draw(how.starts_with("random:") ? std::strtoull(how.c_str() + 7, nullptr, 10) : 1);
    for (int64_t k = 0; k < array.size; ++k) {
      double value = array.access == Access::kWrite ? 77 : 0;
      if (!list.empty()) value = list[static_cast<size_t>(k)];
      if (how == "iota") value = static_cast<double>(k);
      if (how.starts_with("random:")) value = static_cast<double>(draw.Next() % 201) - 100;
      Put(bytes_.back(), array.type, k, BitsOfDouble(array.type, value));
    }
  }
  return Ok();
}

std::vector<SimArgument> TestArrays::Arguments() {
  std::vector<SimArgument> arguments;
  for (size_t i = 0; i < memory_.size(); ++i)
    arguments.push_back({bytes_[memory_[i]].data(), elements_[i]});
  return arguments;
}

std::string TestArrays::Text(const Kernel& kernel, size_t argument) const {
  const Array& array = kernel.arrays[argument];
  std::string text = array.name + ":";
  for (int64_t i = 0; i < elements_[argument]; ++i) {
    Bits bits = Get(bytes_[memory_[argument]], array.type, i);
    if (IsFloat(array.type)) {
      text += array.type == ScalarType::kF64
                  ? fmt::format(" {}", DoubleOfBits(array.type, bits))
                  : fmt::format(" {}", static_cast<float>(DoubleOfBits(array.type, bits)));
    } else {
      text += fmt::format(" {}", IntOfBits(array.type, bits));
    }
  }
  return text;
}

}  // namespace tokamak
