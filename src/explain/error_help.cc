#include "explain/error_help.h"

#include <algorithm>
#include <iterator>

namespace tokamak {
namespace {

constexpr ErrorHelp kErrorHelp[] = {
#define TOK_ERROR_HELP(number, why, fix) {static_cast<ErrorCode>(number), why, fix},
#include "explain/error_help.def"
};

}  // namespace

const ErrorHelp* FindErrorHelp(std::string_view code) {
  const auto* it = std::find_if(std::begin(kErrorHelp), std::end(kErrorHelp),
                                [&](const auto& row) { return CodeText(row.code) == code; });
  return it == std::end(kErrorHelp) ? nullptr : it;
}

}  // namespace tokamak
