#include "driver/interp_executable.h"

#include <algorithm>
#include <utility>

#include "driver/array_bytes.h"
#include "driver/host_calls.h"
#include "driver/program_facts.h"
#include "interp/interp.h"
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

class InterpExecutable final : public Executable {
 public:
  InterpExecutable(std::unique_ptr<Module> module, const CompileOptions& options)
      : module_(std::move(module)), prepared_(*module_) {
    name_ = module_->name();
    replicas_ = options.num_replicas;
    partitions_ = options.num_partitions;
    cost_ = CostOf(*module_);
    calls_host_ = CallsHost(*module_);
    double price = 0;
    for (const auto& computation : module_->computations()) price += PriceOf(*computation);
    predicted_us_ = price;
    for (const Instr* parameter : module_->entry()->parameters())
      shapes_.push_back(parameter->shape().WithoutLayout());
  }

  Status Describe() {
    TOK_TRY(parameters_, ParametersOf(*module_));
    TOK_TRY(results_, ResultsOf(*module_));
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
      TOK_TRY(Value value, ValueFromBytes(shapes_[i], inputs[i]));
      arguments.push_back(std::move(value));
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
    for (size_t i = 0; i < results_.size(); ++i)
      if (!results_[i].is_token) StoreBytes(results.value()[i], outputs[i]);
    return Ok();
  }

  std::unique_ptr<Module> module_;
  PreparedModule prepared_;
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
