#include "interp/run_devices.h"

#include <new>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "interp/devices.h"
#include "interp/evaluators.h"
#include "interp/host.h"
#include "support/limits.h"

namespace tokamak {
namespace {

Result<Value> RunOne(Context& context, DeviceComputation& run) {
  try {
    return context.Call(*run.computation, std::move(run.arguments));
  } catch (const std::bad_alloc&) {
    return MakeError(ErrorCode::kOutOfMemory, "run: out of memory");
  } catch (const std::length_error&) {
    return MakeError(ErrorCode::kOutOfMemory, "run: an array does not fit into memory");
  }
}

}  // namespace

Result<std::vector<Value>> RunOnDevices(const Instr& instr, int64_t replicas, int64_t partitions,
                                        std::vector<DeviceComputation> runs, Context& context) {
  if (replicas > kMaxDevices || partitions > kMaxDevices / std::max<int64_t>(replicas, 1)) {
    return Unsupported(instr, std::to_string(replicas) + " x " + std::to_string(partitions) +
                                  " devices, the limit is " + std::to_string(kMaxDevices));
  }
  Devices devices(replicas, partitions);
  std::vector<std::optional<Result<Value>>> results(runs.size());
  std::vector<std::unique_ptr<Context>> contexts;
  for (size_t i = 0; i < runs.size(); ++i) {
    int64_t n = static_cast<int64_t>(i);
    contexts.push_back(context.ForDevice(n / partitions, n % partitions, &devices));
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < runs.size(); ++i) {
    auto body = [&, i] {
      results[i] = RunOne(*contexts[i], runs[i]);
      devices.End(!results[i]->ok());
    };
    try {
      threads.emplace_back(body);
    } catch (const std::system_error&) {
      results[i] = MakeError(ErrorCode::kOutOfMemory,
                             "run: no thread for device " + std::to_string(i) + " can be started");
      devices.End(true);
    }
  }
  for (std::thread& thread : threads) thread.join();
  const Error* waited = nullptr;
  std::vector<Value> values;
  for (std::optional<Result<Value>>& result : results) {
    if (result->ok()) {
      values.push_back(std::move(*result).value());
    } else if (result->error().code != ErrorCode::kDeviceStopped) {
      return result->error();
    } else if (waited == nullptr) {
      waited = &result->error();
    }
  }
  if (waited != nullptr) return *waited;
  return values;
}

// programs[replica][partition]; operands and results are those of the programs, concatenated.
Result<Value> EvalRunParallel(const Instr& instr, std::span<const Value> operands,
                              Context& context) {
  const RunParallelAttrs& attrs = instr.attrs<RunParallelAttrs>();
  const Module& module = *instr.parent()->module();
  if (context.host == nullptr) return Unsupported(instr, "needs a host");
  for (const std::string& name : attrs.infeed) {
    const Computation* feeder = module.FindComputation(name);
    if (feeder == nullptr || !feeder->parameters().empty())
      return Unsupported(instr,
                         "infeed from @" + name + ", which is not a function without parameters");
    TOK_TRY(Value fed, context.Call(*feeder, std::vector<Value>()));
    context.host->Feed(std::move(fed));
  }
  std::vector<DeviceComputation> runs;
  size_t next = 0, partitions = attrs.programs.empty() ? 0 : attrs.programs[0].size();
  for (const Dims& row : attrs.programs) {
    if (row.size() != partitions) return Unsupported(instr, "rows of unequal length");
    for (int64_t program : row) {
      DeviceComputation run{instr.called(static_cast<size_t>(program)), {}};
      for (size_t i = 0; i < run.computation->parameters().size(); ++i) {
        if (next >= operands.size()) return Unsupported(instr, "too few operands for its programs");
        run.arguments.push_back(operands[next++]);
      }
      runs.push_back(std::move(run));
    }
  }
  if (runs.empty()) return Value();
  TOK_TRY(std::vector<Value> values,
          RunOnDevices(instr, static_cast<int64_t>(attrs.programs.size()),
                       static_cast<int64_t>(partitions), std::move(runs), context));
  std::vector<Value> results;
  for (Value& value : values) {
    if (!value.shape().IsTuple()) {
      results.push_back(std::move(value));
      continue;
    }
    for (const Value& element : value.elements()) results.push_back(element);
  }
  if (!instr.shape().IsTuple() && results.size() == 1) return std::move(results[0]);
  return Value::Tuple(std::move(results));
}

}  // namespace tokamak
