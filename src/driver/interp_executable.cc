#include "driver/interp_executable.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "driver/array_bytes.h"
#include "driver/host_calls.h"
#include "driver/program_facts.h"
#include "interp/interp.h"
#include "runtime/strided_copy.h"
#include "text/write.h"

namespace tokamak {
namespace {

// What the interpreter takes for an instruction and for an element of a result (measured, roughly:
// the first runs correct it).
constexpr double kMicrosPerInstr = 0.3, kMicrosPerElement = 0.02;

double PriceOf(const Computation& computation) {
  double micros = 0;
  for (const Instr* instr : computation.Instrs()) {
    micros += kMicrosPerInstr;
    if (instr->shape().IsArray() && !instr->shape().HasDynamicDims())
      micros += kMicrosPerElement * static_cast<double>(instr->shape().ElementCount());
    if (instr->op() == Op::kWhile || instr->op() == Op::kDot || instr->op() == Op::kConvolution)
      micros += 1000;  // it takes what its operands say, not its result: wait for a measurement
  }
  return micros;
}

// Loops and branches of any kind, and sizes that only a run knows.
bool TimeDependsOnData(const Module& module) {
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->Instrs())
      if (instr->op() == Op::kWhile || instr->op() == Op::kConditional ||
          instr->shape().HasDynamicDims())
        return true;
  return false;
}

class InterpExecutable final : public Executable {
 public:
  InterpExecutable(std::unique_ptr<Module> module, const CompileOptions& options)
      : module_(std::move(module)), prepared_(*module_), holds_(*module_) {
    name_ = module_->name();
    replicas_ = options.num_replicas;
    partitions_ = options.num_partitions;
    cost_ = CostOf(*module_);
    calls_host_ = CallsHost(*module_);
    double price = 0;
    for (const auto& computation : module_->computations()) price += PriceOf(*computation);
    predicted_us_ = price;
    time_depends_on_data_ = TimeDependsOnData(*module_);
  }

  Status Describe() {
    if (replicas_ > 1)
      return MakeError(ErrorCode::kNeedsPartitioning,
                       "compile: " + std::to_string(replicas_) +
                           " replicas; programs for several devices are partitions of one",
                       {.file = module_->file});
    if (devices() > 1) {
      if (const Instr* instr = NeedsPartitioner(*module_))
        return MakeError(ErrorCode::kNeedsPartitioning,
                         std::string(instr->info().name) + ": it is spread over " +
                             std::to_string(devices()) +
                             " devices by its sharding alone, which needs automatic partitioning; "
                             "Tokamak runs jax.shard_map programs on several devices",
                         SpanOf(*instr));
    }
    TOK_TRY(parameters_, ParametersOf(*module_, devices()));
    TOK_TRY(results_, ResultsOf(*module_, devices()));
    MatchDonors(parameters_, results_);
    for (size_t i = 0; i < parameters_.size(); ++i) {
      Shape shape = module_->entry()->parameter(i)->shape().WithoutLayout();
      shapes_.push_back(shape.HasDynamicDims() ? shape.WithDims(parameters_[i].whole_dims) : shape);
    }
    for (const ParameterInfo& parameter : parameters_) {
      memory_.arguments += parameter.bytes;
      if (parameter.alias_result >= 0) memory_.aliased += parameter.bytes;
    }
    for (const ArrayInfo& result : results_) memory_.results += result.bytes;
    return Ok();
  }

  std::string HloText() const override { return WriteHloText(*module_); }

 private:
  Status RunOnce(std::span<const void* const> inputs, std::span<void* const> outputs,
                 const RunControl& control) const override {
    std::vector<Value> arguments;
    arguments.reserve(parameters_.size());
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].is_token) {
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
    Result<std::vector<Value>> results = prepared_.Run(std::move(arguments), options);
    if (!results.ok()) {
      AddOrigin(results.error(), *module_);
      return std::move(results.error());
    }
    TOK_CHECK(results.value().size() == results_.size(),
              "a program gave other results than it has");
    for (size_t i = 0; i < results_.size(); ++i) {
      if (results_[i].is_token) continue;
      if (devices() == 1) {
        StoreResult(results.value()[i], results_[i], outputs[i]);
      } else {
        Scatter(i, results.value()[i], outputs);
      }
    }
    return Ok();
  }

  // A result that turned out smaller than its bounds is followed by zeros.
  static void StoreResult(const Value& value, const ArrayInfo& info, void* output) {
    int64_t bytes = value.shape().ByteSize();
    if (bytes < info.bytes) std::memset(output, 0, static_cast<size_t>(info.bytes));
    StoreBytes(value, output);
  }

  // The whole of parameter i out of the parts that the devices hold.
  Result<Value> Gather(size_t i, std::span<const void* const> inputs) const {
    const ParameterInfo& parameter = parameters_[i];
    if (parameter.spread.IsWhole()) return ValueFromBytes(shapes_[i], inputs[i]);
    std::vector<std::byte> whole(static_cast<size_t>(shapes_[i].ByteSize()));
    for (size_t d = 0; d < static_cast<size_t>(devices()); ++d) {
      auto* part = static_cast<const std::byte*>(inputs[d * parameters_.size() + i]);
      CopyPart(parameter, d, whole.data(), const_cast<std::byte*>(part), true);
    }
    return ValueFromBytes(shapes_[i], whole.data());
  }

  // Gives each device its part of result i.
  void Scatter(size_t i, const Value& value, std::span<void* const> outputs) const {
    const ArrayInfo& result = results_[i];
    std::vector<std::byte> whole(static_cast<size_t>(value.shape().ByteSize()));
    StoreBytes(value, whole.data());
    for (size_t d = 0; d < static_cast<size_t>(devices()); ++d)
      CopyPart(result, d, whole.data(), static_cast<std::byte*>(outputs[d * results_.size() + i]),
               false);
  }

  static void CopyPart(const ArrayInfo& info, size_t device, std::byte* whole, std::byte* part,
                       bool into_whole) {
    auto width = static_cast<size_t>(BytesOf(info.type));
    Dims whole_strides(info.dims.size()), part_strides(info.dims.size());
    DenseStrides(info.whole_dims, width, whole_strides);
    DenseStrides(info.dims, width, part_strides);
    Dims begin = info.spread.Begin(device, info.whole_dims);
    for (size_t d = 0; d < begin.size(); ++d) whole += begin[d] * whole_strides[d];
    StridedArray in_whole{whole, whole_strides}, in_part{part, part_strides};
    if (info.bytes == 0) return;
    CopyStrided(into_whole ? in_whole : in_part, into_whole ? in_part : in_whole, info.dims, width);
  }

  std::unique_ptr<Module> module_;
  PreparedModule prepared_;
  HostHolds holds_;
  std::vector<Shape> shapes_;
};

}  // namespace

Result<std::shared_ptr<const Executable>> MakeInterpExecutable(std::unique_ptr<Module> module,
                                                               const CompileOptions& options) {
  auto executable = std::make_shared<InterpExecutable>(std::move(module), options);
  TOK_RETURN_IF_ERROR(executable->Describe());
  return std::shared_ptr<const Executable>(std::move(executable));
}

}  // namespace tokamak
