#include "issued/recording_gpu.h"

#include <fmt/format.h>

#include "driver/report/digest.h"
#include "runtime/event.h"

namespace tokamak {
namespace {

struct RecordedLaunch final : cuda::LaunchCode {
  std::string key;
  bool has_condition = false;
};
struct RecordedProduct final : cuda::ProductCode {
  uint64_t code = 0;
};
struct RecordedCall final : cuda::CallCode {};
struct RecordedGraph final : cuda::StepGraph {
  std::vector<cuda::GraphStep> steps;
};

}  // namespace

std::string KernelKey(const std::string& names, uint64_t code) {
  return fmt::format("kernel {} {:016x}", names, code);
}
std::string ProductKey(uint64_t code) {
  return fmt::format("library {:016x}", code);
}
std::string CopyKey(int64_t bytes) {
  return fmt::format("copy {}", bytes);
}

Result<void*> RecordingGpu::Allocate(size_t bytes, std::string_view) {
  auto* memory = reinterpret_cast<void*>(next_);
  next_ += (bytes + 511) / 256 * 256;
  return memory;
}

Status RecordingGpu::CopyWithin(void* to, const void* from, size_t bytes) {
  if (to != from) ++issued_[CopyKey(static_cast<int64_t>(bytes))];
  return Ok();
}

void RecordingGpu::CopyOutThen(void*, const void*, size_t, Ref<Event> event) {
  event->Fire();
}
void RecordingGpu::FireWhenDone(Ref<Event> event) {
  event->Fire();
}

Result<std::vector<std::shared_ptr<const cuda::LaunchCode>>> RecordingGpu::Load(
    std::span<const cuda::LaunchForm> forms) {
  std::vector<std::shared_ptr<const cuda::LaunchCode>> codes;
  for (const cuda::LaunchForm& form : forms) {
    auto code = std::make_shared<RecordedLaunch>();
    std::string names;
    std::vector<uint64_t> digests;
    for (const cuda::HorizontalKernel& entry : form.entries) {
      names += (names.empty() ? "" : "+") + entry.kernel->name;
      digests.push_back(LaunchDigest(*entry.kernel, entry.blocks));
    }
    code->key = KernelKey(names, DigestOf(digests));
    code->has_condition = form.loop && !form.loop->condition.empty();
    codes.push_back(std::move(code));
  }
  return codes;
}

Status RecordingGpu::Launch(const cuda::LaunchCode& code, std::span<void* const>) {
  ++issued_[static_cast<const RecordedLaunch&>(code).key];
  return Ok();
}

Result<cuda::LoopEnd> RecordingGpu::LaunchLoop(const cuda::LaunchCode& code, std::span<void* const>,
                                               const cuda::LoopChunk& chunk) {
  const auto& launch = static_cast<const RecordedLaunch&>(code);
  ++issued_[launch.key];
  return cuda::LoopEnd{chunk.iterations, launch.has_condition};
}

Result<std::unique_ptr<cuda::StepGraph>> RecordingGpu::MakeGraph(
    std::span<const cuda::GraphStep> steps) {
  auto graph = std::make_unique<RecordedGraph>();
  graph->steps.assign(steps.begin(), steps.end());
  return std::unique_ptr<cuda::StepGraph>(std::move(graph));
}

Status RecordingGpu::RunGraph(cuda::StepGraph& graph, std::span<void* const> pointers) {
  size_t first = 0;
  for (const cuda::GraphStep& step : static_cast<RecordedGraph&>(graph).steps) {
    TOK_RETURN_IF_ERROR(step.code == nullptr
                            ? CopyWithin(pointers[first], pointers[first + 1], step.bytes)
                            : Launch(*step.code, pointers.subspan(first, step.pointers)));
    first += step.pointers;
  }
  return Ok();
}

Result<std::shared_ptr<const cuda::ProductCode>> RecordingGpu::LoadProduct(
    const MatrixProduct& product, const cuda::ProductKind&) {
  auto code = std::make_shared<RecordedProduct>();
  ProductCall call;
  call.product = product;
  code->code = ProductDigest(call);
  return std::shared_ptr<const cuda::ProductCode>(std::move(code));
}

Result<std::shared_ptr<const cuda::ProductCode>> RecordingGpu::LoadConvolution(
    const Convolution& convolution) {
  auto code = std::make_shared<RecordedProduct>();
  ProductCall call;
  call.convolution = convolution;
  code->code = ProductDigest(call);
  return std::shared_ptr<const cuda::ProductCode>(std::move(code));
}

Status RecordingGpu::Multiply(const cuda::ProductCode& code, const ProductArrays&) {
  ++issued_[ProductKey(static_cast<const RecordedProduct&>(code).code)];
  return Ok();
}

Result<std::shared_ptr<const cuda::CallCode>> RecordingGpu::LoadCall(const cuda::DeviceCall&) {
  return std::shared_ptr<const cuda::CallCode>(std::make_shared<RecordedCall>());
}

Status RecordingGpu::Call(const cuda::CallCode&, std::span<void* const>) {
  ++issued_[kDeviceCallKey];
  return Ok();
}

}  // namespace tokamak
