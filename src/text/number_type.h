#pragma once

#include <string_view>

namespace tokamak {

// Whether an integer attribute of MLIR may have the type `type`: index, i32, ui8, si4 ...
inline bool IsIntegerTypeName(std::string_view type) {
  if (type == "index") return true;
  if (type.starts_with("ui") || type.starts_with("si")) type.remove_prefix(1);
  if (type.size() < 2 || type[0] != 'i') return false;
  return type.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

}  // namespace tokamak
