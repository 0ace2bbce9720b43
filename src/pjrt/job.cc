#include "pjrt/job.h"

#include <algorithm>

#include "pjrt/within_memory.h"

namespace tokamak {
namespace {

// Microseconds: shorter programs run on the caller's thread. About the cost of handing work to
// another thread (docs/pjrt.md).
constexpr double kRunOnCallerMicros = 20;

SharedError Share(Status status) {
  return status.ok() ? nullptr : std::make_shared<const Error>(std::move(status.error()));
}

}  // namespace

Job::Job(Ref<PJRT_Client> client, std::shared_ptr<const Executable> executable, Workers& worker)
    : client_(std::move(client)), executable_(std::move(executable)), worker_(worker) {}

bool Job::InputsAreUsable() const {
  return std::all_of(inputs.begin(), inputs.end(),
                     [](const HeldBuffer& input) { return input.usable()->HasFired(); });
}

bool Job::RunsOnCaller() const {
  if (client_->on != nullptr) {
    auto is_there = [](const Ref<Storage>& output) { return output->device() != nullptr; };
    return !executable_->IssueWaits() && std::all_of(outputs.begin(), outputs.end(), is_there);
  }
  // A host function that launches a program blocks the worker, so the program runs here.
  if (HostScope::IsInside()) return true;
  return !executable_->calls_host() && !executable_->time_depends_on_data() &&
         executable_->PredictedMicros() < kRunOnCallerMicros;
}

SharedError Job::RunNow(const std::atomic<bool>* stop) {
  for (const HeldBuffer& input : inputs) {
    if (const SharedError* error = input.usable()->error()) return *error;
    if (const SharedError* error = input.ready->error()) return *error;
  }
  return Share(
      WithinMemory([&] { return client_->on == nullptr ? RunOnHost(stop) : IssueToDevice(stop); }));
}

Status Job::RunOnHost(const std::atomic<bool>* stop) {
  std::vector<const void*> from;
  std::vector<void*> to;
  from.reserve(inputs.size());
  to.reserve(outputs.size());
  for (const HeldBuffer& input : inputs) from.push_back(input.storage->data());
  for (const Ref<Storage>& output : outputs) {
    TOK_RETURN_IF_ERROR(output->Provide());
    to.push_back(output->data());
  }
  return executable_->Run(from, to, {.stop = stop});
}

// Host arrays among the inputs and outputs are staged through device memory.
Status Job::IssueToDevice(const std::atomic<bool>* stop) {
  Device& device = *client_->on;
  std::vector<DeviceMemory> copies;
  auto copy_of = [&](const Storage& storage) -> Result<std::byte*> {
    TOK_TRY(DeviceMemory allocated,
            DeviceMemory::Take(device, storage.size(), "copies of host memory"));
    copies.push_back(std::move(allocated));
    return copies.back().data();
  };
  std::vector<const void*> from;
  std::vector<void*> to;
  from.reserve(inputs.size());
  to.reserve(outputs.size());
  for (const HeldBuffer& input : inputs) {
    const Storage& storage = *input.storage;
    std::byte* at = storage.data();
    if (storage.device() == nullptr) {
      TOK_TRY(at, copy_of(storage));
      TOK_RETURN_IF_ERROR(device.CopyIn(at, storage.data(), storage.size()));
    }
    from.push_back(at);
  }
  for (const Ref<Storage>& output : outputs) {
    std::byte* at = output->data();
    if (output->device() == nullptr) {
      TOK_RETURN_IF_ERROR(output->Provide());
      TOK_TRY(at, copy_of(*output));
    }
    to.push_back(at);
  }
  TOK_RETURN_IF_ERROR(executable_->Issue(from, to, {.stop = stop}));
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]->device() == nullptr)
      TOK_RETURN_IF_ERROR(device.CopyOut(outputs[i]->data(), to[i], outputs[i]->size()));
  return Ok();
}

void Job::Start() {
  for (const Ref<Storage>& output : outputs) output->AddWriter();
  waiting_.store(1, std::memory_order_relaxed);
  for (const HeldBuffer& input : inputs) {
    if (input.usable()->HasFired()) continue;
    waiting_.fetch_add(1, std::memory_order_relaxed);
    input.usable()->Then([this](const SharedError&) { CountDown(); });
  }
  CountDown();
}

void Job::CountDown() {
  if (waiting_.fetch_sub(1, std::memory_order_acq_rel) == 1) worker_.Post(this);
}

void Job::Run(bool stopped) {
  SharedError error;
  if (stopped) {
    error = std::make_shared<const Error>(MakeError(
        ErrorCode::kStopped,
        "execute: '" + executable_->name() + "' had not run when the client was destroyed"));
  } else if (executable_->calls_host()) {
    Workers::Away away(worker_);
    error = RunNow(&worker_.stopping());
  } else {
    error = RunNow(&worker_.stopping());
  }
  Finish(error);
}

// Releases the inputs first, so that their memory is free once the outputs are ready.
void Job::Finish(const SharedError& error) {
  inputs.clear();
  for (const Ref<Storage>& output : outputs) output->ReleaseWriter();
  outputs.clear();
  Ref<Event> event = std::move(done), asked = std::move(issued);
  Ref<PJRT_Client> client = std::move(client_);  // keeps the worker alive beyond this task
  delete this;
  if (client->on != nullptr && error == nullptr) {
    client->on->FireWhenDone(event);
  } else {
    event->Fire(error);
  }
  if (asked) asked->Fire(error);
}

}  // namespace tokamak
