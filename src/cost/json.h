#pragma once

#include <string>
#include <string_view>

#include "cost/rates.h"
#include "support/result.h"

namespace tokamak {

// Machine files, and what kernels do, as JSON. docs/cost_model.md says what the fields mean.

std::string ToJson(const Rates& rates);
// TK6001 when the text is none: `file` is named.
Result<Rates> RatesFromJson(std::string_view text, const std::string& file);

std::string ToJson(const Work& work);
Result<Work> WorkFromJson(std::string_view text, const std::string& file);

}  // namespace tokamak
