// Programs, compiled programs and their arrays; included by <tokamak/tokamak.h>, which has an
// example.
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

// An error with its location.
class Error {
 public:
  Error(std::string code, std::string message)
      : code_(std::move(code)), message_(std::move(message)) {
    text_ = "error[" + code_ + "]: " + message_;
  }
  // Takes ownership of an error of the C API. Requires that it is not null.
  explicit Error(tok_error* error)
      : code_(tok_error_code(error)),
        message_(tok_error_message(error)),
        text_(tok_error_text(error)),
        line_(tok_error_line(error)) {
    tok_error_free(error);
  }

  const std::string& code() const { return code_; }        // "TK5009": docs/errors/TK50xx.md
  const std::string& message() const { return message_; }  // one line
  // Text for people: with the location in the program, the source line, and notes.
  const std::string& text() const { return text_; }
  int64_t line() const { return line_; }  // in the program's text, from 1; 0 if none
  void AddNote(const std::string& note) { text_ += "note: " + note + "\n"; }

 private:
  std::string code_, message_, text_;
  int64_t line_ = 0;
};

// A value or an error. Requires ok() before the value is accessed.
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

// A dense row-major array in host memory, either owned or borrowed. Copies share the memory.
class Buffer {
 public:
  Buffer() = default;
  // Allocates zeroed memory, aligned to 64 bytes.
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
  // Copies the elements. T is float, double, int32_t, std::complex<float> ... or an integer of the
  // width of `type`, such as uint16_t for the bits of bf16.
  template <typename T>
  static Result<Buffer> From(std::span<const T> elements, std::vector<int64_t> dims,
                             Type type = TypeOf<T>()) {
    Result<Buffer> buffer = Make({type, std::move(dims)});
    if (!buffer.ok()) return buffer;
    if (elements.size_bytes() != buffer->bytes())
      return Error("TK5009", "buffer: " + ToString(buffer->shape()) + " has " +
                                 std::to_string(buffer->bytes()) + " bytes, got " +
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
  // Borrows memory of the caller, which must outlive the buffer and its copies. It must have the
  // size of the shape and the alignment of its elements.
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
  // The elements as T; empty unless T has the size of the buffer's elements.
  template <typename T>
  std::span<T> as() {
    bool fits = sizeof(T) == WidthOf(shape_.type);
    return fits ? std::span<T>(static_cast<T*>(data()), bytes_ / sizeof(T)) : std::span<T>();
  }
  template <typename T>
  std::span<const T> as() const {
    return const_cast<Buffer*>(this)->as<T>();
  }

  // A C API view that points into this buffer.
  tok_array InC() const {
    return {memory_.get(), bytes_, NameOf(shape_.type), static_cast<int64_t>(shape_.dims.size()),
            shape_.dims.data()};
  }
  // The size of an array in bytes. Returns TK6117 for invalid or overflowing sizes.
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

// A parsed program. Copies share it.
class Module {
 public:
  // Reads StableHLO text (.mlir), its bytecode (.mlirbc) or HLO text (.hlo); the format is detected
  // from the bytes. The number selects a program of a file with several, separated by "// -----".
  static Result<Module> FromFile(const std::string& path, size_t program = 0) {
    tok_module* module = nullptr;
    if (tok_error* error = tok_module_read_file(path.c_str(), program, &module))
      return Error(error);
    return Module(module);
  }
  // Reads a program from memory; `name` replaces the file name in errors.
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

// The backend that runs a program.
enum class Target {
  kBest,         // the value of TOKAMAK_DEVICE, else the best that is built
  kCpu,          // machine code for this processor
  kInterpreter,  // the reference interpreter: slow, defines the semantics
};

struct Options {
  bool strict = false;           // no rewrite that may change a bit of a result
  bool require_kernels = false;  // an instruction without a kernel is an error
  // Any other option by name, as listed by tok_options: {"tokamak_dump_to", "/tmp/x"}.
  std::vector<std::pair<std::string, std::string>> named = {};
};

// A compiled program. Copies share it. Thread-safe: threads may run it concurrently.
class Executable {
 public:
  std::string name() const { return tok_executable_name(executable_.get()); }
  const std::vector<Shape>& parameters() const { return parameters_; }
  const std::vector<Shape>& results() const { return results_; }
  // JSON: {"kernels": 3, "host_steps": ["sort: has no kernel"], "temporary_bytes": 64}.
  std::string info() const { return tok_executable_info(executable_.get()); }

  // Runs the program and waits. Returns TK5009 if the arguments do not match the parameters.
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
  // Runs into existing memory. Results must not overlap arguments or each other.
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
  friend class Plan;
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

// Compiles a program. Does not modify the module.
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
