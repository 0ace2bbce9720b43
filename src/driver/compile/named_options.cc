#include "driver/compile/named_options.h"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

#include "driver/compile/backend.h"
#include "driver/compile/dump.h"
#include "driver/compile/fusion_options.h"
#include "fusion/plan.h"
#include "rewrite/pipeline.h"
#include "support/near_names.h"

namespace tokamak {
namespace {

// docs/pjrt.md lists them.
constexpr NamedOption kOptions[] = {
    {"tokamak_backend", "string", "", "the backend: interp, cpu or cuda"},
    {"tokamak_check_plugins", "bool", "false",
     "compare values before and after each pass of a plugin"},
    {"tokamak_dump_to", "string", "", "folder for the program before and after compilation"},
    {"tokamak_effort", "string", "default", "planning effort: fast, default or max"},
    {"tokamak_fuse", "string", "",
     "instructions (names, or train.py:12) to fuse into one kernel if possible: 'a,b;c,d'"},
    {"tokamak_fusion", "string", "search", "the fusion planner: none, rules, greedy or search"},
    {"tokamak_lift", "string", "", "rules of tokamak_fusion=rules to disable"},
    {"tokamak_never_fuse", "string", "",
     "instructions (names, or train.py:12) to keep in separate kernels: 'a,b'"},
    {"tokamak_horizontal", "string", "",
     "horizontal fusion: none, auto (if profitable; the default for GPUs) or all that are legal"},
    {"tokamak_passes", "string", "default", "the passes that run, such as inline,(simplify,cse)*"},
    {"tokamak_require_fused", "string", "",
     "as tokamak_fuse, but an error if impossible: 'a,b;c,d'"},
    {"tokamak_require_kernels", "bool", "false", "an instruction without a kernel is an error"},
    {"tokamak_schedule", "string", "",
     "for developers: 'cheapest', 'preferred', or schedules of kernels: 'KERNEL=SCHEDULE;...'"},
    {"tokamak_skip_passes", "string", "", "passes to skip, separated by commas"},
    {"tokamak_strict_plugins", "bool", "false", "a failure of a plugin is an error"},
    {"tokamak_strict", "bool", "false", "no rewrite that may change a bit of a result"},
};

Error UnknownOption(std::string_view name) {
  std::vector<std::string_view> names;
  for (const NamedOption& option : kOptions) names.push_back(option.name);
  // The message starts as XLA's does: programs search for it.
  std::string text = "No such compile option: '" + ShownWord(name) + "'";
  std::string meant = DidYouMean(name, names);
  if (!meant.empty()) return MakeError(ErrorCode::kUnknownOption, text + meant);
  return MakeError(
      ErrorCode::kUnknownOption,
      text + "; options of Tokamak begin with tokamak_ (docs/pjrt.md), those of XLA with xla_");
}

// XLA's own option names, which JAX programs pass; they configure XLA and are ignored.
bool IsOfXla(std::string_view name) {
  constexpr std::string_view kOfBuild[] = {
      "exec_time_optimization_effort",
      "memory_fitting_effort",
      "memory_fitting_level",
      "optimization_level",
      "process_count",
      "process_index",
      "slice_size",
      "use_shardy_partitioner",
  };
  return name.starts_with("xla_") || name.starts_with("megascale_") ||
         std::find(std::begin(kOfBuild), std::end(kOfBuild), name) != std::end(kOfBuild);
}

// JAX's effort value, from -1 to 1.
void SetEffort(CompileOptions& options, const OptionValue& value) {
  double effort = 0;
  if (const double* real = std::get_if<double>(&value)) effort = *real;
  if (const int64_t* whole = std::get_if<int64_t>(&value)) effort = static_cast<double>(*whole);
  options.effort = effort < 0 ? Effort::kFast : effort > 0 ? Effort::kMax : Effort::kDefault;
}

Error BadValue(const NamedOption& option, const char* takes) {
  return MakeError(ErrorCode::kOptionValue, "compiler option '" + std::string(option.name) +
                                                "': expected " + takes + " (" +
                                                std::string(option.meaning) + ")");
}

Result<std::string> Text(const NamedOption& option, const OptionValue& value) {
  if (const std::string* text = std::get_if<std::string>(&value)) return *text;
  return BadValue(option, "a string");
}

// JAX passes True as a bool or "true" as text.
Result<bool> Truth(const NamedOption& option, const OptionValue& value) {
  if (const bool* truth = std::get_if<bool>(&value)) return *truth;
  if (const int64_t* number = std::get_if<int64_t>(&value)) return *number != 0;
  if (const std::string* text = std::get_if<std::string>(&value)) {
    if (*text == "true" || *text == "True" || *text == "1") return true;
    if (*text == "false" || *text == "False" || *text == "0") return false;
  }
  return BadValue(option, "True or False");
}

std::string_view Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Variables that the thread pool, the reports and the BLAS loader would ignore silently if their
// values are invalid.
Status CheckVariables() {
  std::string_view threads = Variable("TOKAMAK_THREADS");
  bool is_number = threads.find_first_not_of("0123456789") == std::string_view::npos &&
                   threads.find_first_not_of('0') != std::string_view::npos;
  if (!threads.empty() && !is_number)
    return MakeError(ErrorCode::kOptionValue, "TOKAMAK_THREADS: '" + ShownWord(threads) +
                                                  "' is not a number of threads, 1 or more");
  std::string_view debug = Variable("TOKAMAK_DEBUG");
  if (!debug.empty() && debug != "explain" && debug != "decisions")
    return MakeError(ErrorCode::kOptionValue,
                     "TOKAMAK_DEBUG: " + NoneOf(debug, {"explain", "decisions"}));
  std::string_view lint = Variable("TOKAMAK_LINT");
  if (!lint.empty() && lint != "0" && lint != "1")
    return MakeError(ErrorCode::kOptionValue, "TOKAMAK_LINT: " + NoneOf(lint, {"0", "1"}));
  std::string blas(Variable("TOKAMAK_BLAS"));
  if (blas.find('/') != std::string::npos && access(blas.c_str(), R_OK) != 0)
    return MakeError(ErrorCode::kOptionValue,
                     "TOKAMAK_BLAS: cannot read '" + ShownWord(blas) +
                         "'; expected the path of an OpenBLAS library, or off");
  return Ok();
}

// Whether the text names an injectable failure: "crash", "abort", "fatal" or "endless", optionally
// with ":2", the number of code generation attempts that it affects.
bool IsCodegenFault(std::string_view text) {
  size_t colon = text.find(':');
  std::string_view efforts = colon == std::string_view::npos ? "1" : text.substr(colon + 1);
  return std::ranges::find(kCodegenFaults, text.substr(0, colon)) != kCodegenFaults.end() &&
         efforts.size() == 1 && efforts[0] >= '1' && efforts[0] <= '3';
}

}  // namespace

std::span<const NamedOption> AllOptions() {
  return kOptions;
}

Status SetOption(CompileOptions& options, std::string_view name, const OptionValue& value) {
  if (name == "exec_time_optimization_effort") SetEffort(options, value);
  if (IsOfXla(name)) return Ok();
  const NamedOption* option =
      std::find_if(std::begin(kOptions), std::end(kOptions),
                   [&](const NamedOption& row) { return row.name == name; });
  if (option == std::end(kOptions)) return UnknownOption(name);
  if (option->type == "bool") {
    TOK_TRY(bool truth, Truth(*option, value));
    (name == "tokamak_strict"           ? options.strict
     : name == "tokamak_strict_plugins" ? options.strict_plugins
     : name == "tokamak_check_plugins"  ? options.check_plugins
                                        : options.require_kernels) = truth;
    return Ok();
  }
  TOK_TRY(std::string text, Text(*option, value));
  if (name == "tokamak_backend") {
    options.backend = std::move(text);
  } else if (name == "tokamak_dump_to") {
    options.dump_dir = std::move(text);
  } else if (name == "tokamak_effort") {
    TOK_TRY(options.effort, ParseEffort(text));
  } else if (name == "tokamak_fusion") {
    TOK_TRY(options.fusion, ParseFusionMode(text));
  } else if (name == "tokamak_lift") {
    TOK_TRY(options.lifted, ParseLifted(WordsOf(text, ',')));
  } else if (name == "tokamak_never_fuse") {
    options.constraints.never_fuse = WordsOf(text, ',');
  } else if (name == "tokamak_fuse") {
    options.constraints.fuse = WordsOf(text, ';');
  } else if (name == "tokamak_require_fused") {
    options.constraints.require_fused = WordsOf(text, ';');
  } else if (name == "tokamak_schedule") {
    options.schedules = {};
    for (const std::string& word : WordsOf(text, ';'))
      TOK_RETURN_IF_ERROR(AddScheduleOption(options.schedules, word));
  } else if (name == "tokamak_horizontal") {
    options.horizontal = HorizontalModeFromName(text);
    if (!options.horizontal && !text.empty()) return BadValue(*option, "none, auto or all");
  } else if (name == "tokamak_passes") {
    TOK_TRY(options.passes, ParsePipeline(text));
  } else {
    TOK_TRY(options.skip_passes, ParseSkipped(WordsOf(text, ',')));
  }
  return Ok();
}

Status AddChecksOfEnvironment(CompileOptions& options) {
  TOK_RETURN_IF_ERROR(CheckVariables());
  const char* given = std::getenv("TOKAMAK_CHECK");
  std::string_view rest = given == nullptr ? "" : given;
  constexpr std::string_view kCodegen = "codegen-";
  while (!rest.empty()) {
    std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (word == "kernels") {
      options.check_kernels = true;
    } else if (word == "memory") {
      options.check_memory = true;
    } else if (word == "horizontal") {
      options.horizontal = HorizontalMode::kAll;
    } else if (word == "fault") {
      options.faults = true;
    } else if (word == "reject") {
      options.reject_launches = true;
    } else if (word == "chunks") {
      options.short_chunks = true;
    } else if (word.starts_with(kCodegen) && IsCodegenFault(word.substr(kCodegen.size()))) {
      options.codegen_fault = word.substr(kCodegen.size());
    } else {
      return MakeError(ErrorCode::kOptionValue,
                       "TOKAMAK_CHECK: " + NoneOf(word, {"kernels", "memory", "horizontal", "fault",
                                                         "reject", "chunks", "codegen-crash"}));
    }
  }
  return Ok();
}

Result<CompileOptions> OptionsOfEnvironment() {
  CompileOptions options;
  options.dump_dir = DumpDirOfEnvironment();
  const char* device = std::getenv("TOKAMAK_DEVICE");
  if (device == nullptr) return options;
  options.backend = device;
  Result<const BackendInfo*> backend = FindBackend(options.backend);
  if (backend.ok()) return options;
  Error error = std::move(backend.error());
  error.message = "TOKAMAK_DEVICE: " + error.message;
  return error;
}

}  // namespace tokamak
