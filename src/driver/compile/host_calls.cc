// Host functions (Python callbacks, FFI handlers) that custom calls reach. The registry maps a call
// target to a C function pointer; lookups copy the entry under a shared lock, so that a function
// runs without the lock and may register others.
//
// Shutdown: when Python finalizes, no callback may start and all running ones must have returned.
// `inside_host` counts the running calls. StopHostCalls adds a large negative number, and a new
// call that sees a negative counter is rejected:
//
//   0, 1, 2 ...     running calls          kStopped + n    stopped, n calls are still inside
//
// A HostVisit increments before it tests, so there is no gap between the test and the call. The
// stop is permanent.

#include "driver/compile/host_calls.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "driver/compile/custom_kernel_code.h"
#include "interp/array_bytes.h"
#include "interp/context.h"
#include "runtime/worker.h"
#include "support/json_text.h"

namespace tokamak {
namespace {

struct Registered {
  HostFn caller = nullptr;
  void* fn = nullptr;
  void* user = nullptr;
};

struct Holder {
  HoldFn fn = nullptr;
  void* user = nullptr;
};

struct Registry {
  std::shared_mutex mutex;
  std::unordered_map<std::string, Registered> functions;
  std::unordered_map<std::string, Holder> holders;
};

// Number of running host calls; negative after StopHostCalls.
constexpr int64_t kStopped = INT64_MIN / 2;
std::atomic<int64_t> inside_host{0};

Registry& Functions() {
  static auto* functions = new Registry;
  return *functions;
}

nlohmann::json JsonOf(const AttrValue& value);

nlohmann::json JsonOf(const AttrDict& dict) {
  nlohmann::json object = nlohmann::json::object();
  for (const AttrEntry& entry : dict) object[entry.name] = JsonOf(entry.value);
  return object;
}

nlohmann::json JsonOfLiteral(const Literal& literal) {
  nlohmann::json list = nlohmann::json::array();
  if (!literal.shape().IsArray()) return list;
  for (int64_t i = 0; i < literal.shape().ElementCount(); ++i) {
    if (IsReal(literal.type())) {
      list.push_back(literal.DoubleAt(i));
    } else if (!IsComplex(literal.type())) {
      list.push_back(literal.IntAt(i));
    }
  }
  return list;
}

// Values that JSON cannot represent become null.
nlohmann::json JsonOf(const AttrValue& value) {
  if (const bool* flag = value.As<bool>()) return *flag;
  if (const IntAttr* number = value.As<IntAttr>()) return number->value;
  if (const FloatAttr* number = value.As<FloatAttr>()) return number->value;
  if (const std::string* text = value.As<std::string>()) return *text;
  if (const SymbolAttr* symbol = value.As<SymbolAttr>()) return symbol->name;
  if (const AttrDict* dict = value.As<AttrDict>()) return JsonOf(*dict);
  if (const Literal* literal = value.As<Literal>()) return JsonOfLiteral(*literal);
  if (const DenseArrayAttr* array = value.As<DenseArrayAttr>()) {
    if (!array->floats.empty()) return array->floats;
    return array->ints;
  }
  if (const AttrList* list = value.As<AttrList>()) {
    nlohmann::json array = nlohmann::json::array();
    for (const AttrValue& element : *list) array.push_back(JsonOf(element));
    return array;
  }
  return nullptr;
}

// The attributes of a call, from all forms in which they may be written.
AttrDict AttributesOf(const Instr& instr) {
  AttrDict all = instr.attrs<CustomCallAttrs>().backend_dict;
  for (const char* name : {"mhlo.attributes", "mhlo.backend_config"})
    if (const AttrValue* inner = Find(instr.extras().discardable, name))
      if (const AttrDict* dict = inner->As<AttrDict>())
        for (const AttrEntry& entry : *dict) Set(all, entry.name, entry.value);
  return all;
}

// The attribute `id` of a call.
std::optional<int64_t> IdOf(const Instr& instr) {
  const AttrDict attrs = AttributesOf(instr);
  const AttrValue* value = Find(attrs, "id");
  const IntAttr* number = value == nullptr ? nullptr : value->As<IntAttr>();
  return number == nullptr ? std::nullopt : std::optional<int64_t>(number->value);
}

HostArrayView ViewOf(const Shape& shape, std::vector<std::byte>& bytes) {
  return {bytes.data(), bytes.size(), std::string(HloName(shape.type())), shape.dims()};
}

std::vector<Shape> ResultShapes(const Instr& instr) {
  if (!instr.shape().IsTuple()) return {instr.shape()};
  return instr.shape().elements();
}

class HostCallTable final : public HostCalls {
 public:
  bool Knows(const std::string& target) const override {
    return target == kCustomKernelTarget || IsHostCall(target);
  }

  // Operands and results are copies, dense and row-major, that live as long as the call. Tokens are
  // not passed.
  Result<Value> Call(const Instr& instr, std::span<const Value> operands, int64_t device) override {
    if (IsCustomKernelCall(instr)) return EvaluateCustomKernel(instr, operands);
    const CustomCallAttrs& attrs = instr.attrs<CustomCallAttrs>();
    Registered function;
    {
      std::shared_lock<std::shared_mutex> lock(Functions().mutex);
      auto it = Functions().functions.find(attrs.target);
      if (it == Functions().functions.end())
        return Unsupported(instr, "'" + attrs.target + "' was unregistered during the lookup");
      function = it->second;
    }
    HostCallFrame frame;
    frame.target = attrs.target;
    frame.attrs = AttributesOf(instr);
    frame.attributes = JsonText(JsonOf(frame.attrs));
    frame.opaque = attrs.backend_config;
    frame.device = device;
    std::vector<std::vector<std::byte>> bytes;
    std::vector<Shape> shapes = ResultShapes(instr);
    bytes.reserve(operands.size() + shapes.size());
    for (const Value& operand : operands) {
      if (!operand.shape().IsArray()) continue;
      bytes.emplace_back(static_cast<size_t>(operand.shape().ByteSize()));
      StoreBytes(operand, bytes.back().data());
      frame.inputs.push_back(ViewOf(operand.shape(), bytes.back()));
    }
    for (const Shape& shape : shapes) {
      if (shape.IsToken()) continue;
      if (!shape.IsArray() || shape.HasDynamicDims())
        return Unsupported(instr, "'" + attrs.target + "' returns " + ToString(shape));
      bytes.emplace_back(static_cast<size_t>(shape.ByteSize()));
      frame.outputs.push_back(ViewOf(shape, bytes.back()));
    }
    std::string failure;
    {
      HostVisit visit;
      if (!visit.is_welcome())
        return MakeError(ErrorCode::kStopped,
                         "custom-call: '" + attrs.target + "': host functions were stopped",
                         SpanOf(instr));
      HostScope scope;
      failure = function.caller(frame, function.fn, function.user);
    }
    if (!failure.empty())
      return MakeError(ErrorCode::kHostCall, "custom-call: '" + attrs.target + "': " + failure,
                       SpanOf(instr));
    return Results(instr, shapes, frame);
  }

 private:
  static Result<Value> Results(const Instr& instr, const std::vector<Shape>& shapes,
                               const HostCallFrame& frame) {
    std::vector<Value> results;
    size_t next = 0;
    for (const Shape& shape : shapes) {
      if (shape.IsToken()) {
        results.push_back(Value::Token());
        continue;
      }
      TOK_TRY(Value value, ValueFromBytes(shape.WithoutLayout(), frame.outputs[next++].data));
      results.push_back(std::move(value));
    }
    if (!instr.shape().IsTuple()) return std::move(results[0]);
    return Value::Tuple(std::move(results));
  }
};

}  // namespace

void RegisterHostCall(const std::string& target, HostFn caller, void* fn, void* user) {
  std::unique_lock<std::shared_mutex> lock(Functions().mutex);
  Functions().functions[target] = {caller, fn, user};
}

void UnregisterHostCall(const std::string& target) {
  std::unique_lock<std::shared_mutex> lock(Functions().mutex);
  Functions().functions.erase(target);
}

bool IsHostCall(const std::string& target) {
  std::shared_lock<std::shared_mutex> lock(Functions().mutex);
  return Functions().functions.contains(target);
}

void SetHostHold(const std::string& target, HoldFn fn, void* user) {
  std::unique_lock<std::shared_mutex> lock(Functions().mutex);
  Functions().holders[target] = {fn, user};
}

HostHolds::HostHolds(const Module& module) {
  {
    std::shared_lock<std::shared_mutex> lock(Functions().mutex);
    if (Functions().holders.empty()) return;
    for (const auto& computation : module.computations()) {
      for (const Instr* instr : computation->Instrs()) {
        if (instr->op() != Op::kCustomCall) continue;
        auto it = Functions().holders.find(instr->attrs<CustomCallAttrs>().target);
        std::optional<int64_t> id = IdOf(*instr);
        if (it == Functions().holders.end() || it->second.fn == nullptr || !id) continue;
        holds_.push_back({it->second.fn, it->second.user, *id});
      }
    }
  }
  for (const Hold& hold : holds_) {
    HostVisit visit;
    if (!visit.is_welcome()) return;
    hold.fn(hold.id, 1, hold.user);
  }
}

HostHolds::~HostHolds() {
  for (const Hold& hold : holds_) {
    HostVisit visit;
    if (!visit.is_welcome()) return;
    hold.fn(hold.id, -1, hold.user);
  }
}

HostVisit::HostVisit() : is_welcome_(inside_host.fetch_add(1, std::memory_order_acq_rel) >= 0) {}

HostVisit::~HostVisit() {
  inside_host.fetch_sub(1, std::memory_order_acq_rel);
}

// Idempotent. Polls, because it runs once per process; rejected calls may raise the counter for a
// moment.
void StopHostCalls() {
  int64_t inside = inside_host.load();
  while (inside >= 0 && !inside_host.compare_exchange_weak(inside, inside + kStopped)) {
  }
  while (inside_host.load(std::memory_order_acquire) != kStopped)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

HostCalls& RegisteredHostCalls() {
  static auto* calls = new HostCallTable;
  return *calls;
}

}  // namespace tokamak
