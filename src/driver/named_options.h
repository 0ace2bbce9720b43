#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "driver/compile_options.h"
#include "support/result.h"

namespace tokamak {

// The options of a compilation by their names, as jax.jit(f, compiler_options={...}) gives them.
struct NamedOption {
  std::string_view name, type, standard, meaning;
};
std::span<const NamedOption> AllOptions();

using OptionValue = std::variant<std::string, bool, int64_t, double>;
// TK6106 for a name that does not exist, with the nearest that does; TK6107 says what the option
// takes. Names of XLA (xla_* and a few more) are left alone.
Status SetOption(CompileOptions& options, std::string_view name, const OptionValue& value);

// What TOKAMAK_DEVICE, TOKAMAK_EXPLAIN and XLA_FLAGS ask for. TK6002 and TK6003 for a device that
// there is not.
Result<CompileOptions> OptionsOfEnvironment();
// What TOKAMAK_CHECK=kernels,memory asks for, whoever compiles. TK6107 for another word.
Status AddChecksOfEnvironment(CompileOptions& options);

}  // namespace tokamak
