// tok_module_explain: compile reports for C.

#include "driver/report/explain.h"

#include "capi/handles.h"
#include "driver/compile/named_options.h"
#include "driver/measure/measure_compilation.h"
#include "ir/clone.h"

namespace tokamak {
namespace {

tok_error* ExplainIt(tok_module& module, std::span<const tok_option> given) {
  ExplainRequest request;
  Result<CompileOptions> environment = OptionsOfEnvironment();
  if (!environment.ok()) return InC(environment.error());
  for (const tok_option& option : given) {
    if (option.name == nullptr || option.value == nullptr)
      return InvalidArgument("explain: an option has no name or no value");
    if (option.name == std::string_view("measure")) {
      request.report.measurer = IsTrue(option.value) ? MeasureCompilation : nullptr;
      continue;
    }
    Status set = SetExplainOption(request, option.name, option.value);
    if (!set.ok()) return InC(set.error());
  }
  std::unique_ptr<Module> copy = CloneModule(*module.module);
  if (copy->entry() == nullptr)
    return InC(MakeError(
        ErrorCode::kNoEntry,
        "explain: the module has neither a function main nor exactly one public function"));
  Result<std::string> text = Explained(std::move(copy), request);
  if (!text.ok()) return InC(text.error());
  module.explained = std::move(text.value());
  return nullptr;
}

}  // namespace
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
