// tok_module_explain: compile reports for C.

#include "driver/report/explain.h"

#include "capi/handles.h"
#include "driver/compile/named_options.h"
#include "driver/measure/measure_compilation.h"
#include "ir/clone.h"

namespace tokamak {
namespace {

// The request that options make. `name`: where it may be given, the name of the program.
Status ReadRequest(std::span<const tok_option> given, ExplainRequest& request, std::string* name) {
  Result<CompileOptions> environment = OptionsOfEnvironment();
  if (!environment.ok()) return environment.error();
  for (const tok_option& option : given) {
    bool is_name = name != nullptr && option.name != nullptr && option.value != nullptr &&
                   option.name == std::string_view("name");
    if (is_name) {
      *name = option.value;
    } else {
      TOK_RETURN_IF_ERROR(SetRequestOption(request, option, "explain"));
    }
  }
  return Ok();
}

Status CheckEntry(const Module& module) {
  if (module.entry() != nullptr) return Ok();
  return MakeError(
      ErrorCode::kNoEntry,
      "explain: the module has neither a function main nor exactly one public function");
}

tok_error* ExplainIt(tok_module& module, std::span<const tok_option> given) {
  ExplainRequest request;
  if (Status read = ReadRequest(given, request, nullptr); !read.ok()) return InC(read.error());
  if (Status entry = CheckEntry(*module.module); !entry.ok()) return InC(entry.error());
  Result<std::string> text = Explained(CloneModule(*module.module), request);
  if (!text.ok()) return InC(text.error());
  module.explained = std::move(text.value());
  return nullptr;
}

Result<DiffSide> SideOfDiff(const Module& module, std::span<const tok_option> given) {
  DiffSide side;
  side.name = module.name();
  TOK_RETURN_IF_ERROR(ReadRequest(given, side.request, &side.name));
  TOK_RETURN_IF_ERROR(CheckEntry(module));
  if (!side.request.targets.empty())
    return MakeError(ErrorCode::kOptionValue, "explain: target: a side of a diff has one target");
  side.module = CloneModule(module);
  return side;
}

tok_error* ExplainDiffOf(const tok_diff_side& a, const tok_diff_side& b) {
  Result<DiffSide> first = SideOfDiff(*a.module->module, {a.options, a.num_options});
  if (!first.ok()) return InC(first.error());
  Result<DiffSide> second = SideOfDiff(*b.module->module, {b.options, b.num_options});
  if (!second.ok()) return InC(second.error());
  Result<std::string> text = ExplainedDiff(std::move(first.value()), std::move(second.value()));
  if (!text.ok()) return InC(text.error());
  a.module->explained = std::move(text.value());
  return nullptr;
}

bool IsSide(const tok_diff_side* side) {
  return side != nullptr && side->module != nullptr &&
         (side->options != nullptr || side->num_options == 0);
}

}  // namespace

Status SetRequestOption(ExplainRequest& request, const tok_option& option,
                        std::string_view caller) {
  if (option.name == nullptr || option.value == nullptr)
    return MakeError(ErrorCode::kApiArgument,
                     std::string(caller) + ": an option has no name or no value");
  if (option.name != std::string_view("measure"))
    return SetExplainOption(request, option.name, option.value);
  request.report.measurer = IsTrue(option.value) ? MeasureCompilation : nullptr;
  return Ok();
}

}  // namespace tokamak

tok_error* tok_module_explain(tok_module* module, const tok_option* options, size_t num_options,
                              const char** text) {
  return tokamak::Guarded([&]() -> tok_error* {
    if (module == nullptr || text == nullptr || (options == nullptr && num_options > 0))
      return tokamak::InvalidArgument("explain: a null pointer");
    *text = nullptr;
    tok_error* error = tokamak::ExplainIt(*module, {options, num_options});
    if (error == nullptr) *text = module->explained.c_str();
    return error;
  });
}

tok_error* tok_module_explain_diff(const tok_diff_side* a, const tok_diff_side* b,
                                   const char** text) {
  return tokamak::Guarded([&]() -> tok_error* {
    if (!tokamak::IsSide(a) || !tokamak::IsSide(b) || text == nullptr)
      return tokamak::InvalidArgument("explain: a null pointer");
    *text = nullptr;
    tok_error* error = tokamak::ExplainDiffOf(*a, *b);
    if (error == nullptr) *text = a->module->explained.c_str();
    return error;
  });
}
