#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/attr_value.h"

namespace tokamak {

// Dictionaries inside HLO text. XLA prints those of typed custom calls and of
// composites as MLIR does, {mode = 86 : ui8, flags = [true], name = "x"}, so
// all dictionaries of a program are written that way here. Where MLIR's
// spelling would not name one value only, ours is
//   !hlo<f32[2]{0}>     a shape that is no plain tensor type
//   hlo<f32[2] {1, 2}>  a literal that has one

// `text` includes the braces. Nullopt when it is anything else (JSON, say).
std::optional<AttrDict> ParseHloAttrDict(std::string_view text);
void AppendAttrDict(std::string& out, const AttrDict& dict);
void AppendAttrValue(std::string& out, const AttrValue& value);

}  // namespace tokamak
