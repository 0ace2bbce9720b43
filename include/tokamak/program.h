// Programs, compiled programs and their arrays, for <tokamak/tokamak.h>, which says how they go
// together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <tokamak/c_api.h>
#include <tokamak/types.h>

namespace tokamak {

// ---- errors

// What went wrong, and where.
class Error {
 public:
  Error(std::string code, std::string message)
      : code_(std::move(code)), message_(std::move(message)) {
    text_ = "error[" + code_ + "]: " + message_;
  }
  // Takes over an error of the C API, which is not null.
  explicit Error(tok_error* error)
      : code_(tok_error_code(error)),
        message_(tok_error_message(error)),
        text_(tok_error_text(error)),
        line_(tok_error_line(error)) {
    tok_error_free(error);
  }

  const std::string& code() const { return code_; }        // "TK5009": docs/errors/TK5009.md
  const std::string& message() const { return message_; }  // one line
  // As a person reads it: with the place in the program, the line there, and notes.
  const std::string& text() const { return text_; }
  int64_t line() const { return line_; }  // in the program's text, from 1; 0: none
  void AddNote(const std::string& note) { text_ += "note: " + note + "\n"; }

 private:
  std::string code_, message_, text_;
  int64_t line_ = 0;
};

// A value, or why there is none. Ask ok() before the value is looked at.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() { return *std::get_if<0>(&state_); }
  const T& value() const { return *std::get_if<0>(&state_); }
  const Error& error() const { return *std::get_if<1>(&state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Error> state_;
};

struct Done {};
using Status = Result<Done>;

// ---- arrays

// A dense row-major array in the memory of the host: its own, or somebody else's. Copies share the
// memory.
class Buffer {
 public:
  Buffer() = default;
  // Memory of its own, filled with zeros, aligned to 64 bytes.
  static Result<Buffer> Make(Shape shape) {
    Result<size_t> bytes = BytesOf(shape);
    if (!bytes.ok()) return bytes.error();
    void* data = ::operator new(std::max<size_t>(*bytes, 1), std::align_val_t(64), std::nothrow);
    if (data == nullptr)
      return Error("TK5002", "buffer: no memory for the " + std::to_string(*bytes) + " bytes of " +
                                 ToString(shape));
    std::memset(data, 0, *bytes);
    std::shared_ptr<void> owned(data, [](void* p) { ::operator delete(p, std::align_val_t(64)); });
    return Buffer(std::move(shape), std::move(owned), *bytes);
  }
  // The elements, copied. T is float, double, int32_t, std::complex<float> ... or an integer of the
  // width of `type`, such as uint16_t for the bits of bf16.
  template <typename T>
  static Result<Buffer> From(std::span<const T> elements, std::vector<int64_t> dims,
                             Type type = TypeOf<T>()) {
    Result<Buffer> buffer = Make({type, std::move(dims)});
    if (!buffer.ok()) return buffer;
    if (elements.size_bytes() != buffer->bytes())
      return Error("TK5009", "buffer: " + ToString(buffer->shape()) + " has " +
                                 std::to_string(buffer->bytes()) + " bytes, given are " +
                                 std::to_string(elements.size_bytes()));
    if (!elements.empty()) std::memcpy(buffer->data(), elements.data(), buffer->bytes());
    return buffer;
  }
  template <typename T>
  static Result<Buffer> From(std::initializer_list<T> elements, std::vector<int64_t> dims) {
    return From<T>(std::span<const T>(elements.begin(), elements.size()), std::move(dims));
  }
  template <typename T>
  static Result<Buffer> From(const std::vector<T>& elements, std::vector<int64_t> dims) {
    return From<T>(std::span<const T>(elements), std::move(dims));
  }
  // Memory of the caller, who keeps it as long as the buffer and its copies. As large as the shape
  // says, and aligned as its elements are.
  static Result<Buffer> Borrow(void* data, size_t bytes, Shape shape) {
    Result<size_t> needed = BytesOf(shape);
    if (!needed.ok()) return needed.error();
    if (data == nullptr && *needed > 0) return Error("TK6117", "buffer: the memory is null");
    if (bytes != *needed)
      return Error("TK5009", "buffer: " + ToString(shape) + " has " + std::to_string(*needed) +
                                 " bytes, the memory has " + std::to_string(bytes));
    return Buffer(std::move(shape), std::shared_ptr<void>(data, [](void*) {}), bytes);
  }

  const Shape& shape() const { return shape_; }
  size_t bytes() const { return bytes_; }
  void* data() { return memory_.get(); }
  const void* data() const { return memory_.get(); }
  // The elements as T, whose size is that of the buffer's elements; else nothing.
  template <typename T>
  std::span<T> as() {
    bool fits = sizeof(T) == WidthOf(shape_.type);
    return fits ? std::span<T>(static_cast<T*>(data()), bytes_ / sizeof(T)) : std::span<T>();
  }
  template <typename T>
  std::span<const T> as() const {
    return const_cast<Buffer*>(this)->as<T>();
  }

  // As the C API has it. Points into this.
  tok_array InC() const {
    return {memory_.get(), bytes_, NameOf(shape_.type), static_cast<int64_t>(shape_.dims.size()),
            shape_.dims.data()};
  }
  // How many bytes an array takes; TK6117 for sizes that are none, or too large to count.
  static Result<size_t> BytesOf(const Shape& shape) {
    auto bytes = static_cast<int64_t>(WidthOf(shape.type));
    if (bytes == 0) return Error("TK6117", "buffer: a type that does not exist");
    bool counts = true;
    for (int64_t size : shape.dims)
      counts = counts && size >= 0 && !__builtin_mul_overflow(bytes, size, &bytes);
    if (!counts) return Error("TK6117", "buffer: " + ToString(shape) + " is no size of an array");
    return static_cast<size_t>(bytes);
  }

 private:
  Buffer(Shape shape, std::shared_ptr<void> memory, size_t bytes)
      : shape_(std::move(shape)), memory_(std::move(memory)), bytes_(bytes) {}

  Shape shape_;
  std::shared_ptr<void> memory_;
  size_t bytes_ = 0;
};

// ---- programs

// A program as it was read. Copies share it.
class Module {
 public:
  // StableHLO text (.mlir), its bytecode (.mlirbc) or HLO text (.hlo): seen from the bytes. The
  // number is for files with several programs, "// -----" between them.
  static Result<Module> FromFile(const std::string& path, size_t program = 0) {
    tok_module* module = nullptr;
    if (tok_error* error = tok_module_read_file(path.c_str(), program, &module))
      return Error(error);
    return Module(module);
  }
  // The same from memory; `name` stands for the file in errors.
  static Result<Module> FromBytes(std::string_view bytes, const std::string& name = "program") {
    tok_module* module = nullptr;
    if (tok_error* error = tok_module_read(bytes.data(), bytes.size(), name.c_str(), &module))
      return Error(error);
    return Module(module);
  }

  std::string HloText() const { return tok_module_text(module_.get()); }
  const tok_module* InC() const { return module_.get(); }

 private:
  explicit Module(tok_module* module) : module_(module, tok_module_free) {}
  std::shared_ptr<tok_module> module_;
};

// Where a program runs.
enum class Target {
  kBest,         // what TOKAMAK_DEVICE says, else the best that is built
  kCpu,          // machine code for this processor
  kInterpreter,  // the reference: slow, and right by definition
};

struct Options {
  bool strict = false;           // no rewrite that may change a bit of a result
  bool require_kernels = false;  // an instruction that only the interpreter could do is an error
  // Any other option by its name, as tok_options lists them: {"tokamak_dump_to", "/tmp/x"}.
  std::vector<std::pair<std::string, std::string>> named = {};
};

// A compiled program. Copies share it; any number of threads may run it at a time.
class Executable {
 public:
  std::string name() const { return tok_executable_name(executable_.get()); }
  const std::vector<Shape>& parameters() const { return parameters_; }
  const std::vector<Shape>& results() const { return results_; }
  // JSON: {"kernels": 3, "host_steps": ["sort: has no kernel"], "temporary_bytes": 64}.
  std::string info() const { return tok_executable_info(executable_.get()); }

  // Runs it and waits. The arguments must have the shapes of the parameters (TK5009).
  Result<std::vector<Buffer>> Run(std::span<const Buffer> arguments) const {
    std::vector<Buffer> results;
    for (const Shape& shape : results_) {
      Result<Buffer> result = Buffer::Make(shape);
      if (!result.ok()) return result.error();
      results.push_back(std::move(*result));
    }
    Status status = RunInto(arguments, results);
    if (!status.ok()) return status.error();
    return results;
  }
  template <typename... B>
  Result<std::vector<Buffer>> Run(const Buffer& first, const B&... others) const {
    std::vector<Buffer> arguments = {first, others...};
    return Run(std::span<const Buffer>(arguments));
  }
  // The same into memory that is there. Results overlap neither arguments nor each other.
  Status RunInto(std::span<const Buffer> arguments, std::span<const Buffer> results) const {
    std::vector<tok_array> from, to;
    for (const Buffer& argument : arguments) from.push_back(argument.InC());
    for (const Buffer& result : results) to.push_back(result.InC());
    tok_error* error =
        tok_executable_run(executable_.get(), from.data(), from.size(), to.data(), to.size());
    if (error != nullptr) return Error(error);
    return Done{};
  }

 private:
  friend Result<Executable> Compile(const Module&, Target, const Options&);
  explicit Executable(tok_executable* executable) : executable_(executable, tok_executable_free) {
    for (size_t i = 0; i < tok_executable_num_parameters(executable); ++i)
      parameters_.push_back(ShapeOf(*tok_executable_parameter(executable, i)));
    for (size_t i = 0; i < tok_executable_num_results(executable); ++i)
      results_.push_back(ShapeOf(*tok_executable_result(executable, i)));
  }
  static Shape ShapeOf(const tok_array& array) {
    return {TypeFromName(array.type), {array.dims, array.dims + array.rank}};
  }

  std::shared_ptr<tok_executable> executable_;
  std::vector<Shape> parameters_, results_;
};

// Makes a program executable. The module stays as it is.
inline Result<Executable> Compile(const Module& module, Target target = Target::kBest,
                                  const Options& options = {}) {
  std::vector<tok_option> given;
  if (target == Target::kCpu) given.push_back({"tokamak_backend", "cpu"});
  if (target == Target::kInterpreter) given.push_back({"tokamak_backend", "interp"});
  if (options.strict) given.push_back({"tokamak_strict", "true"});
  if (options.require_kernels) given.push_back({"tokamak_require_kernels", "true"});
  for (const auto& [name, value] : options.named) given.push_back({name.c_str(), value.c_str()});
  tok_executable* executable = nullptr;
  tok_error* error = tok_compile(module.InC(), given.data(), given.size(), &executable);
  if (error != nullptr) return Error(error);
  return Executable(executable);
}

}  // namespace tokamak
