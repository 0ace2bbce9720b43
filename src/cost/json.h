#pragma once

#include <string>
#include <string_view>

#include "cost/rates.h"
#include "support/result.h"

namespace tokamak {

// JSON of machine files and of Work. docs/cost_model.md documents the fields.

std::string ToJson(const Rates& rates);
// Returns TK6001, naming `file`, if the text is not a machine file.
Result<Rates> RatesFromJson(std::string_view text, const std::string& file);

std::string ToJson(const Work& work);
Result<Work> WorkFromJson(std::string_view text, const std::string& file);

}  // namespace tokamak
