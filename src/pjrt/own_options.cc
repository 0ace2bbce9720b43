#include "pjrt/own_options.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "driver/dump.h"

namespace tokamak {
namespace {

using Value = PjrtCompileOptions::Value;

enum class Kind : uint8_t { kBool, kText };

struct Option {
  std::string_view name;
  Kind kind;
  std::string_view meaning;
};

// docs/pjrt.md lists them.
constexpr Option kOptions[] = {
    {"tokamak_backend", Kind::kText, "what runs the program: interp, cpu or cuda"},
    {"tokamak_dump_to", Kind::kText, "folder for the program before and after compilation"},
    {"tokamak_strict", Kind::kBool, "no rewrite that may change a bit of a result"},
};

size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

Error UnknownOption(std::string_view name) {
  const Option* nearest = std::min_element(std::begin(kOptions), std::end(kOptions),
                                           [&](const Option& a, const Option& b) {
                                             return Distance(name, a.name) < Distance(name, b.name);
                                           });
  return MakeError(ErrorCode::kUnknownOption, "compiler option '" + std::string(name) +
                                                  "': there is none; did you mean '" +
                                                  std::string(nearest->name) + "'?");
}

Error BadValue(const Option& option, const char* takes) {
  return MakeError(ErrorCode::kOptionValue, "compiler option '" + std::string(option.name) +
                                                "': it takes " + takes + " (" +
                                                std::string(option.meaning) + ")");
}

Result<std::string> Text(const Option& option, const Value& value) {
  if (const std::string* text = std::get_if<std::string>(&value)) return *text;
  return BadValue(option, "a text");
}

// JAX passes True as a bool, "true" as a text.
Result<bool> Truth(const Option& option, const Value& value) {
  if (const bool* truth = std::get_if<bool>(&value)) return *truth;
  if (const int64_t* number = std::get_if<int64_t>(&value)) return *number != 0;
  if (const std::string* text = std::get_if<std::string>(&value)) {
    if (*text == "true" || *text == "True" || *text == "1") return true;
    if (*text == "false" || *text == "False" || *text == "0") return false;
  }
  return BadValue(option, "True or False");
}

}  // namespace

Result<CompileOptions> OwnOptions(const PjrtCompileOptions& options) {
  CompileOptions own;
  own.num_replicas = options.num_replicas;
  own.num_partitions = options.num_partitions;
  own.dump_dir = DumpDirOfEnvironment();
  if (const char* device = std::getenv("TOKAMAK_DEVICE"); device != nullptr) own.backend = device;
  for (const auto& [name, value] : options.overrides) {
    if (!std::string_view(name).starts_with("tokamak_")) continue;
    const Option* option = std::find_if(std::begin(kOptions), std::end(kOptions),
                                        [&](const Option& row) { return row.name == name; });
    if (option == std::end(kOptions)) return UnknownOption(name);
    if (name == "tokamak_backend") {
      TOK_TRY(own.backend, Text(*option, value));
    } else if (name == "tokamak_dump_to") {
      TOK_TRY(own.dump_dir, Text(*option, value));
    } else {
      TOK_TRY(own.strict, Truth(*option, value));
    }
  }
  return own;
}

}  // namespace tokamak
