// Execute: holds the inputs, creates the outputs, and schedules the program for when the inputs are
// ready. It never blocks. Short programs with ready inputs run on the caller's thread, and device
// programs are issued there.

#include <algorithm>
#include <mutex>

#include "pjrt/buffer.h"
#include "pjrt/event.h"
#include "pjrt/executable.h"
#include "pjrt/job.h"
#include "pjrt/slots.h"
#include "runtime/process.h"

namespace tokamak {
namespace {

Error ArgumentsError(const std::string& what) {
  return MakeError(ErrorCode::kExecuteArguments, "execute: " + what);
}

Status CheckCall(const PJRT_LoadedExecutable_Execute_Args& args) {
  PJRT_LoadedExecutable& loaded = *args.executable;
  TOK_RETURN_IF_ERROR(loaded.client->CheckRunning());
  const Executable& executable = *loaded.program->executable;
  if (loaded.deleted.load(std::memory_order_relaxed))
    return ArgumentsError("'" + loaded.program->name + "' was deleted");
  if (args.num_devices != loaded.devices.size())
    return ArgumentsError("'" + loaded.program->name + "' is for " +
                          std::to_string(loaded.devices.size()) + " devices, got " +
                          std::to_string(args.num_devices));
  if (args.num_args != executable.parameters().size())
    return ArgumentsError("'" + loaded.program->name + "' has " +
                          std::to_string(executable.parameters().size()) + " parameters, got " +
                          std::to_string(args.num_args));
  return Ok();
}

bool IsDonatable(const PJRT_ExecuteOptions* options, size_t parameter) {
  if (options == nullptr || !TOK_PJRT_HOLDS(*options, num_non_donatable_input_indices)) return true;
  const int64_t* begin = options->non_donatable_input_indices;
  const int64_t* end = begin + options->num_non_donatable_input_indices;
  return std::find(begin, end, static_cast<int64_t>(parameter)) == end;
}

// A donated buffer must not be another argument of the same call: JAX rejects that on every
// platform. Nothing has been consumed yet, so the caller keeps its buffers.
Status CheckDonations(const PJRT_LoadedExecutable_Execute_Args& args) {
  const std::vector<ParameterInfo>& parameters = args.executable->program->executable->parameters();
  std::vector<std::pair<PJRT_Buffer*, size_t>> uses;
  for (size_t d = 0; d < args.num_devices; ++d) {
    for (size_t i = 0; i < args.num_args; ++i) {
      if (!parameters[i].donated || !IsDonatable(args.options, i)) continue;
      if (uses.empty()) {
        uses.reserve(args.num_args);
        for (size_t n = 0; n < args.num_args; ++n) uses.emplace_back(args.argument_lists[d][n], n);
        std::sort(uses.begin(), uses.end());
      }
      PJRT_Buffer* donated = args.argument_lists[d][i];
      auto at = std::lower_bound(uses.begin(), uses.end(), std::pair(donated, size_t{0}));
      if (at->second == i) ++at;
      if (at == uses.end() || at->first != donated) continue;
      const ParameterInfo& other = parameters[at->second];
      bool twice = other.donated && IsDonatable(args.options, at->second);
      return ArgumentsError("the buffer donated as argument " + std::to_string(i) + " is also " +
                            (twice ? "donated as" : "read as") + " argument " +
                            std::to_string(at->second) +
                            ": a donated buffer must not be passed as another argument");
    }
    uses.clear();
  }
  return Ok();
}

// The buffer's type must match the parameter's; a token accepts any buffer.
Status CheckArgument(const PJRT_Buffer& buffer, const ParameterInfo& parameter, size_t number) {
  std::span<const int64_t> dims = buffer.dims.span();
  if (parameter.is_token) return Ok();
  if (buffer.type == parameter.type &&
      std::equal(dims.begin(), dims.end(), parameter.dims.begin(), parameter.dims.end()))
    return Ok();
  return ArgumentsError("parameter " + std::to_string(number) + " is " +
                        ToString(Shape::Array(parameter.type, parameter.dims)) +
                        ", its argument is " +
                        ToString(Shape::Array(buffer.type, Dims(dims.begin(), dims.end()))));
}

Status HoldInputs(const PJRT_LoadedExecutable_Execute_Args& args, Job& job) {
  const std::vector<ParameterInfo>& parameters = args.executable->program->executable->parameters();
  job.inputs.reserve(args.num_devices * args.num_args);
  for (size_t d = 0; d < args.num_devices; ++d) {
    for (size_t i = 0; i < args.num_args; ++i) {
      PJRT_Buffer& buffer = *args.argument_lists[d][i];
      TOK_RETURN_IF_ERROR(CheckArgument(buffer, parameters[i], i));
      TOK_TRY(HeldBuffer held, buffer.Hold());
      job.inputs.push_back(std::move(held));
    }
  }
  return Ok();
}

// Consumes the donated buffers. If nothing else uses the memory of one, its aliased result reuses
// it.
void TakeDonated(const PJRT_LoadedExecutable_Execute_Args& args, Job& job) {
  const Executable& executable = *args.executable->program->executable;
  for (size_t i = 0; i < args.num_args; ++i) {
    const ParameterInfo& parameter = executable.parameters()[i];
    if (!parameter.donated || !IsDonatable(args.options, i)) continue;
    for (size_t d = 0; d < args.num_devices; ++d) {
      // Another thread may have taken or deleted it in the meantime.
      Result<HeldBuffer> taken = args.argument_lists[d][i]->Take();
      if (!taken.ok() || parameter.alias_result < 0) continue;
      taken.value() = {};
      const Ref<Storage>& storage = job.inputs[d * args.num_args + i].storage;
      size_t result = d * executable.results().size() + static_cast<size_t>(parameter.alias_result);
      if (storage->CanReuse() && !job.outputs[result]) job.outputs[result] = storage;
    }
  }
}

PJRT_Memory* MemoryOfKind(PJRT_Device* device, const std::string& kind) {
  for (PJRT_Memory* memory : device->memories)
    if (memory->kind == kind) return memory;
  return device->memories[0];
}

Status MakeOutputs(const PJRT_LoadedExecutable_Execute_Args& args, Job& job) {
  const std::vector<ArrayInfo>& results = args.executable->program->executable->results();
  job.outputs.resize(args.num_devices * results.size());
  TakeDonated(args, job);
  for (size_t n = 0; n < job.outputs.size(); ++n) {
    if (job.outputs[n]) continue;
    const ArrayInfo& result = results[n % results.size()];
    PJRT_Device* device = args.executable->devices[n / results.size()];
    TOK_TRY(job.outputs[n], MemoryOfKind(device, result.memory_kind)
                                ->Promise(static_cast<size_t>(result.bytes),
                                          "results of '" + args.executable->program->name + "'"));
  }
  return Ok();
}

// Creates the handles of the outputs, which are filled when `job.done` fires and usable when
// `job.issued` fires.
void ReturnOutputs(PJRT_LoadedExecutable_Execute_Args& args, PJRT_Device* only, const Job& job) {
  const std::vector<ArrayInfo>& results = args.executable->program->executable->results();
  for (size_t d = 0; d < args.num_devices; ++d) {
    PJRT_Device* device = only != nullptr ? only : args.executable->devices[d];
    for (size_t r = 0; r < results.size(); ++r) {
      const ArrayInfo& result = results[r];
      args.output_lists[d][r] =
          new PJRT_Buffer(MemoryOfKind(device, result.memory_kind), result.type, result.dims,
                          {job.outputs[d * results.size() + r], job.done, job.issued});
    }
    if (args.device_complete_events != nullptr)
      args.device_complete_events[d] = ReturnEvent(job.done);
  }
}

// Runs the job on this thread, or issues it to the device.
void RunOnCaller(PJRT_LoadedExecutable_Execute_Args& args, PJRT_Device* only, Device* device,
                 Job& job) {
  SharedError error = job.RunNow(nullptr);
  if (error != nullptr) {
    job.done = Event::Failed(std::move(error));
  } else if (device == nullptr) {
    job.done = Event::Ready();
  } else {
    job.done = MakeRef<Event>();
    job.issued = Event::Ready();
    device->FireWhenDone(job.done);
  }
  ReturnOutputs(args, only, job);
}

}  // namespace

PJRT_Error* PJRT_LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args& args) {
  if (Status status = CheckCall(args); !status.ok()) return Fail(status.error());
  PJRT_LoadedExecutable& loaded = *args.executable;
  PJRT_Device* only = args.execute_device;
  Device* device = loaded.client->on;
  Workers& own = *(only != nullptr ? only : loaded.devices[0])->worker;
  Workers& worker = HostScope::IsInside() ? Pool() : own;
  auto job = std::make_unique<Job>(loaded.client, loaded.executable, worker);
  if (Status status = CheckDonations(args); !status.ok()) return Fail(status.error());
  if (Status status = HoldInputs(args, *job); !status.ok()) return Fail(status.error());
  if (Status status = MakeOutputs(args, *job); !status.ok()) return Fail(status.error());
  if (job->RunsOnCaller() && job->InputsAreUsable()) {
    RunOnCaller(args, only, device, *job);
    return nullptr;
  }
  job->done = MakeRef<Event>();
  if (device != nullptr) job->issued = MakeRef<Event>();
  ReturnOutputs(args, only, *job);
  job.release()->Start();
  return nullptr;
}

}  // namespace tokamak
