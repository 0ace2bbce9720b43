#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/attr_value.h"

namespace tokamak {

// Dictionaries inside HLO text. XLA prints the dictionaries of typed custom calls and composites in
// MLIR syntax, {mode = 86 : ui8, flags = [true], name = "x"}, so all dictionaries of a program use
// that syntax here. Where MLIR's spelling is ambiguous, these forms are used instead:
//   !hlo<f32[2]{0}>     a shape that is not a plain tensor type
//   hlo<f32[2] {1, 2}>  a literal of such a shape

// `text` includes the braces. Returns nullopt if it is anything else (JSON, for example).
std::optional<AttrDict> ParseHloAttrDict(std::string_view text);
void AppendAttrDict(std::string& out, const AttrDict& dict);
void AppendAttrValue(std::string& out, const AttrValue& value);

}  // namespace tokamak
