#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "driver/compile/compile_options.h"
#include "support/result.h"

namespace tokamak {

// A compile option by name, as passed by jax.jit(f, compiler_options={...}).
struct NamedOption {
  std::string_view name, type, standard, meaning;
};
std::span<const NamedOption> AllOptions();

using OptionValue = std::variant<std::string, bool, int64_t, double>;
// Returns TK6106 for an unknown name, with the nearest known one, and TK6107 with the accepted
// values for an invalid value. XLA's own names (xla_* and a few more) are ignored.
Status SetOption(CompileOptions& options, std::string_view name, const OptionValue& value);

// Options from TOKAMAK_DEVICE, TOKAMAK_EXPLAIN and XLA_FLAGS. Returns TK6002 or TK6003 if the
// device does not exist.
Result<CompileOptions> OptionsOfEnvironment();
// Applies TOKAMAK_CHECK=kernels,memory to any compilation. Returns TK6107 for an unknown word, and
// for an invalid value of a variable that is read where no error can be returned.
Status AddChecksOfEnvironment(CompileOptions& options);

}  // namespace tokamak
