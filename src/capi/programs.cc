// Programs, compiled programs and their runs in C. No exception leaves this file: allocation
// failures become errors.

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "capi/handles.h"
#include "driver/compile/named_options.h"
#include "driver/run/make_executable.h"
#include "ir/clone.h"
#include "support/json_text.h"
#include "text/load.h"
#include "text/read.h"
#include "text/write.h"

struct tok_executable {
  std::shared_ptr<const tokamak::Executable> program;
  std::vector<tok_array> parameters, results;
  std::string info;
};

namespace tokamak {

tok_error* OutOfMemoryError() {
  static tok_error error{"TK5002", "out of memory", "error[TK5002]: out of memory", 0};
  return &error;
}

tok_error* InC(const Error& error, std::string_view source) {
  auto* made = new tok_error;
  made->code = CodeText(error.code);
  made->message = error.message;
  made->text = Render(error, source);
  made->line = error.where.line;
  return made;
}

tok_error* InvalidArgument(std::string message) {
  return InC(MakeError(ErrorCode::kApiArgument, std::move(message)));
}

namespace {

// The public description of a parameter or result. Texts and dimensions belong to the executable.
tok_array Describe(const ArrayInfo& info) {
  return {nullptr, static_cast<size_t>(info.bytes), InfoOf(info.type).hlo.data(),
          static_cast<int64_t>(info.dims.size()), info.dims.data()};
}

}  // namespace

tok_executable* ExecutableInC(std::shared_ptr<const Executable> program) {
  auto made = std::make_unique<tok_executable>();
  made->program = std::move(program);
  for (const ParameterInfo& info : made->program->parameters())
    made->parameters.push_back(Describe(info));
  for (const ArrayInfo& info : made->program->results()) made->results.push_back(Describe(info));
  made->info = JsonText({{"kernels", made->program->Launches()},
                         {"host_steps", made->program->HostSteps()},
                         {"temporary_bytes", made->program->memory().temporary}});
  return made.release();
}

namespace {

tok_error* TakeProgram(LoadedFile& file, size_t number, tok_module** out) {
  if (number >= file.programs.size())
    return InvalidArgument("read: " + file.path + " has " + std::to_string(file.programs.size()) +
                           " programs; there is no program number " + std::to_string(number));
  Result<std::unique_ptr<Module>>& program = file.programs[number];
  if (!program.ok()) return InC(program.error(), file.source());
  *out = new tok_module{std::move(program.value()), {}, {}};
  return nullptr;
}

std::string TextOf(const tok_array& array) {
  std::string text = std::string(array.type) + "[";
  for (int64_t d = 0; d < array.rank; ++d)
    text += (d == 0 ? "" : ",") + std::to_string(array.dims[d]);
  return text + "]";
}

bool SameShape(const tok_array& x, const tok_array& y) {
  if (std::strcmp(x.type, y.type) != 0 || x.rank != y.rank) return false;
  for (int64_t d = 0; d < x.rank; ++d)
    if (x.dims[d] != y.dims[d]) return false;
  return true;
}

// Why the array does not match the program's; empty if it does.
std::string WhyNot(const tok_array& given, const tok_array& wanted, const ArrayInfo& info) {
  if (given.rank > 0 && given.dims == nullptr) return "it has no dimensions";
  if (given.type != nullptr && !SameShape(given, wanted))
    return "it is " + TextOf(given) + ", the program has " + TextOf(wanted);
  if (given.bytes != wanted.bytes)
    return "it has " + std::to_string(given.bytes) + " bytes, " + TextOf(wanted) + " has " +
           std::to_string(wanted.bytes);
  if (given.data == nullptr && wanted.bytes > 0) return "it has no memory";
  int64_t width = BytesOf(IsComplex(info.type) ? RealPartOf(info.type) : info.type);
  if (reinterpret_cast<uintptr_t>(given.data) % static_cast<uintptr_t>(width) != 0)
    return "its memory is not aligned to " + std::to_string(width) + " bytes";
  return "";
}

Error BadArray(const char* what, size_t i, const std::string& why) {
  return MakeError(ErrorCode::kBadArguments,
                   "run: " + std::string(what) + " " + std::to_string(i) + ": " + why);
}

Status CheckArrays(const tok_executable& executable, const tok_array* inputs,
                   const tok_array* results) {
  for (size_t i = 0; i < executable.parameters.size(); ++i) {
    std::string why =
        WhyNot(inputs[i], executable.parameters[i], executable.program->parameters()[i]);
    if (!why.empty()) return BadArray("argument", i, why);
  }
  for (size_t i = 0; i < executable.results.size(); ++i) {
    std::string why = WhyNot(results[i], executable.results[i], executable.program->results()[i]);
    if (!why.empty()) return BadArray("result", i, why);
  }
  return Ok();
}

Error WrongCount(const char* what, size_t wanted, size_t given) {
  return MakeError(ErrorCode::kBadArguments, "run: the program has " + std::to_string(wanted) +
                                                 " " + what + ", got " + std::to_string(given));
}

tok_error* RunIt(const tok_executable& executable, std::span<const tok_array> inputs,
                 std::span<const tok_array> results) {
  if (inputs.size() != executable.parameters.size())
    return InC(WrongCount("parameters", executable.parameters.size(), inputs.size()));
  if (results.size() != executable.results.size())
    return InC(WrongCount("results", executable.results.size(), results.size()));
  Status checked = CheckArrays(executable, inputs.data(), results.data());
  if (!checked.ok()) return InC(checked.error());
  std::vector<const void*> from;
  std::vector<void*> to;
  for (const tok_array& input : inputs) from.push_back(input.data);
  for (const tok_array& result : results) to.push_back(result.data);
  Status status = executable.program->Run(from, to, {});
  return status.ok() ? nullptr : InC(status.error());
}

tok_error* CompileIt(const Module& module, std::span<const tok_option> given,
                     tok_executable** out) {
  Result<CompileOptions> environment = OptionsOfEnvironment();
  if (!environment.ok()) return InC(environment.error());
  CompileOptions options = std::move(environment.value());
  for (const tok_option& option : given) {
    if (option.name == nullptr || option.value == nullptr)
      return InvalidArgument("compile: an option has no name or no value");
    Status set = SetOption(options, option.name, std::string(option.value));
    if (!set.ok()) return InC(set.error());
  }
  auto compiled = CompileAndLoad(CloneModule(module), options);
  if (!compiled.ok()) return InC(compiled.error());
  *out = ExecutableInC(std::move(compiled.value()));
  return nullptr;
}

}  // namespace
}  // namespace tokamak

const char* tok_error_code(const tok_error* error) {
  return error == nullptr ? "" : error->code.c_str();
}
const char* tok_error_message(const tok_error* error) {
  return error == nullptr ? "" : error->message.c_str();
}
const char* tok_error_text(const tok_error* error) {
  return error == nullptr ? "" : error->text.c_str();
}
int64_t tok_error_line(const tok_error* error) {
  return error == nullptr ? 0 : error->line;
}
void tok_error_free(tok_error* error) {
  if (error != tokamak::OutOfMemoryError()) delete error;
}

tok_error* tok_module_read_file(const char* path, size_t program, tok_module** module) {
  return tokamak::Guarded([&]() -> tok_error* {
    if (path == nullptr || module == nullptr)
      return tokamak::InvalidArgument("read: a null pointer");
    *module = nullptr;
    auto file = tokamak::LoadFile(path, tokamak::Verification::kYes);
    if (!file.ok()) return tokamak::InC(file.error());
    return tokamak::TakeProgram(file.value(), program, module);
  });
}

tok_error* tok_module_read(const void* data, size_t size, const char* name, tok_module** module) {
  return tokamak::Guarded([&]() -> tok_error* {
    if (module == nullptr || (data == nullptr && size > 0))
      return tokamak::InvalidArgument("read: a null pointer");
    *module = nullptr;
    tokamak::LoadedFile file =
        tokamak::LoadBytes(tokamak::Bytes::Copy(data, size), name == nullptr ? "program" : name,
                           tokamak::Verification::kYes);
    return tokamak::TakeProgram(file, 0, module);
  });
}

const char* tok_module_text(tok_module* module) {
  if (module == nullptr) return "";
  tokamak::Guarded([&]() -> tok_error* {
    if (module->text.empty()) module->text = tokamak::WriteHloText(*module->module);
    return nullptr;
  });
  return module->text.c_str();
}

void tok_module_free(tok_module* module) {
  delete module;
}

tok_error* tok_compile(const tok_module* module, const tok_option* options, size_t num_options,
                       tok_executable** executable) {
  return tokamak::Guarded([&]() -> tok_error* {
    if (module == nullptr || executable == nullptr || (options == nullptr && num_options > 0))
      return tokamak::InvalidArgument("compile: a null pointer");
    *executable = nullptr;
    return tokamak::CompileIt(*module->module, {options, num_options}, executable);
  });
}

void tok_executable_free(tok_executable* executable) {
  delete executable;
}

const char* tok_executable_name(const tok_executable* executable) {
  return executable == nullptr ? "" : executable->program->name().c_str();
}
size_t tok_executable_num_parameters(const tok_executable* executable) {
  return executable == nullptr ? 0 : executable->parameters.size();
}
size_t tok_executable_num_results(const tok_executable* executable) {
  return executable == nullptr ? 0 : executable->results.size();
}
const tok_array* tok_executable_parameter(const tok_executable* executable, size_t i) {
  return i < tok_executable_num_parameters(executable) ? &executable->parameters[i] : nullptr;
}
const tok_array* tok_executable_result(const tok_executable* executable, size_t i) {
  return i < tok_executable_num_results(executable) ? &executable->results[i] : nullptr;
}
const char* tok_executable_info(const tok_executable* executable) {
  return executable == nullptr ? "{}" : executable->info.c_str();
}

tok_error* tok_executable_run(const tok_executable* executable, const tok_array* inputs,
                              size_t num_inputs, const tok_array* results, size_t num_results) {
  return tokamak::Guarded([&]() -> tok_error* {
    if (executable == nullptr || (inputs == nullptr && num_inputs > 0) ||
        (results == nullptr && num_results > 0))
      return tokamak::InvalidArgument("run: a null pointer");
    return tokamak::RunIt(*executable, {inputs, num_inputs}, {results, num_results});
  });
}
