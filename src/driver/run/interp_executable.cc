#include "driver/run/interp_executable.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "driver/compile/host_calls.h"
#include "driver/compile/program_facts.h"
#include "interp/array_bytes.h"
#include "interp/interp.h"
#include "runtime/strided_copy.h"

namespace tokamak {
namespace {

class InterpExecutable final : public Executable {
 public:
  explicit InterpExecutable(std::shared_ptr<const Compilation> compilation)
      : Executable(std::move(compilation)),
        module_(*this->compilation().module),
        prepared_(module_),
        holds_(module_) {
    for (size_t i = 0; i < parameters().size(); ++i) {
      Shape shape = module_.entry()->parameter(i)->shape().WithoutLayout();
      shapes_.push_back(shape.HasDynamicDims() ? shape.WithDims(parameters()[i].whole_dims)
                                               : shape);
    }
  }

 private:
  Status RunOnce(std::span<const void* const> inputs, std::span<void* const> outputs,
                 const RunControl& control) const override {
    std::vector<Value> arguments;
    arguments.reserve(parameters().size());
    for (size_t i = 0; i < parameters().size(); ++i) {
      if (parameters()[i].is_token) {
        arguments.push_back(Value::Token());
        continue;
      }
      if (devices() == 1) {
        TOK_TRY(Value value, ValueFromBytes(shapes_[i], inputs[i]));
        arguments.push_back(std::move(value));
      } else {
        TOK_TRY(Value value, Gather(i, inputs));
        arguments.push_back(std::move(value));
      }
    }
    RunOptions options;
    options.stop = control.stop;
    options.host_calls = &RegisteredHostCalls();
    Result<std::vector<Value>> values = prepared_.Run(std::move(arguments), options);
    if (!values.ok()) {
      AddOrigin(values.error(), module_);
      return std::move(values.error());
    }
    TOK_CHECK(values.value().size() == results().size(),
              "a program returned another number of results");
    for (size_t i = 0; i < results().size(); ++i) {
      if (results()[i].is_token) continue;
      if (devices() == 1) {
        StoreResult(values.value()[i], results()[i], outputs[i]);
      } else {
        Scatter(i, values.value()[i], outputs);
      }
    }
    return Ok();
  }

  // A result smaller than its bounds is padded with zeros.
  static void StoreResult(const Value& value, const ArrayInfo& info, void* output) {
    int64_t bytes = value.shape().ByteSize();
    if (bytes < info.bytes) std::memset(output, 0, static_cast<size_t>(info.bytes));
    StoreBytes(value, output);
  }

  // Assembles the whole of parameter i from the devices' shards.
  Result<Value> Gather(size_t i, std::span<const void* const> inputs) const {
    const ParameterInfo& parameter = parameters()[i];
    if (parameter.shard_map.IsWhole()) return ValueFromBytes(shapes_[i], inputs[i]);
    std::vector<std::byte> whole(static_cast<size_t>(shapes_[i].ByteSize()));
    for (size_t d = 0; d < static_cast<size_t>(devices()); ++d) {
      auto* part = static_cast<const std::byte*>(inputs[d * parameters().size() + i]);
      CopyPart(parameter, d, whole.data(), const_cast<std::byte*>(part), true);
    }
    return ValueFromBytes(shapes_[i], whole.data());
  }

  // Stores each device's shard of result i.
  void Scatter(size_t i, const Value& value, std::span<void* const> outputs) const {
    const ArrayInfo& result = results()[i];
    std::vector<std::byte> whole(static_cast<size_t>(value.shape().ByteSize()));
    StoreBytes(value, whole.data());
    for (size_t d = 0; d < static_cast<size_t>(devices()); ++d)
      CopyPart(result, d, whole.data(), static_cast<std::byte*>(outputs[d * results().size() + i]),
               false);
  }

  static void CopyPart(const ArrayInfo& info, size_t device, std::byte* whole, std::byte* part,
                       bool into_whole) {
    auto width = static_cast<size_t>(BytesOf(info.type));
    Dims whole_strides(info.dims.size()), part_strides(info.dims.size());
    DenseStrides(info.whole_dims, width, whole_strides);
    DenseStrides(info.dims, width, part_strides);
    Dims begin = info.shard_map.Begin(device, info.whole_dims);
    for (size_t d = 0; d < begin.size(); ++d) whole += begin[d] * whole_strides[d];
    StridedArray in_whole{whole, whole_strides}, in_part{part, part_strides};
    if (info.bytes == 0) return;
    CopyStrided(into_whole ? in_whole : in_part, into_whole ? in_part : in_whole, info.dims, width);
  }

  const Module& module_;
  PreparedModule prepared_;
  HostHolds holds_;
  std::vector<Shape> shapes_;
};

}  // namespace

Result<std::shared_ptr<const Executable>> MakeInterpExecutable(
    std::shared_ptr<const Compilation> compilation) {
  return std::shared_ptr<const Executable>(
      std::make_shared<InterpExecutable>(std::move(compilation)));
}

}  // namespace tokamak
