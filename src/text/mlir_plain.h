#pragma once

// Attribute structs as dictionaries of their own fields, for attributes that MLIR's dialects cannot
// express: "tokamak.fusion"(...) <{kind = "kLoop"}>. A field equal to that of a value-initialised
// struct is omitted.

#include <optional>

#include "ir/attrs.h"
#include "ir/op.h"

namespace tokamak {

AttrDict ToPlainDict(Op op, const Attrs& attrs);
// Returns the name of the first field that is unknown or of a wrong kind, else "".
std::string FromPlainDict(Op op, const AttrDict& dict, Attrs& attrs);

// tokamak.sharding: any sharding as a dictionary.
AttrValue ToPlainAttr(const Sharding& sharding);
std::optional<Sharding> PlainSharding(const AttrValue& value);

}  // namespace tokamak
