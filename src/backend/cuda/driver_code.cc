// Code in a GPU: loading, caching and launching.

#include <algorithm>

#include <fmt/format.h>

#include "backend/cuda/convolutions.h"
#include "backend/cuda/driver_gpu.h"
#include "backend/cuda/launch_parameters.h"
#include "backend/cuda/loaded_code.h"
#include "backend/cuda/products.h"
#include "support/interned.h"

namespace tokamak::cuda {

Result<std::shared_ptr<const LoadedModule>> DriverGpu::LoadModule(
    const std::shared_ptr<const std::string>& cubin) {
  Handle module = nullptr;
  int result = api_.load(&module, cubin->data());
  if (result != 0) return DeviceError(result, "code cannot be loaded");
  return std::make_shared<const LoadedModule>(api_, context_, stream_, module);
}

// Sets the function attributes that a launch needs and, for a loop, the grid. Returns TK4120 if the
// device cannot run the form.
Result<std::shared_ptr<const LaunchCode>> DriverGpu::MakeCode(
    const LaunchSource& source, const std::string& label,
    std::shared_ptr<const LoadedModule> module) {
  auto code = std::make_shared<LoadedCode>();
  code->label = &Interned(label);  // messages name launches after their code is unloaded
  code->grid = static_cast<unsigned>(source.grid);
  code->dynamic_bytes = static_cast<unsigned>(source.source.dynamic_bytes);
  code->threads = source.source.threads;
  code->pointers = source.pointers;
  code->maps = source.source.maps;
  int result = api_.function(&code->function, module->handle(), source.source.name.c_str());
  if (result == 0 && code->dynamic_bytes > 0) {
    result = api_.set_function_attribute(code->function, kFunctionDynamicBytes,
                                         static_cast<int>(code->dynamic_bytes));
    if (result == kInvalidValue)
      return MakeError(ErrorCode::kCudaText,
                       fmt::format("kernel {}: {} bytes of shared memory exceed the device limit",
                                   label, code->dynamic_bytes));
  }
  if (result == 0 && source.source.cluster > kPortableCluster)
    result = api_.set_function_attribute(code->function, kFunctionLargeCluster, 1);
  if (result == 0)
    result = api_.function_attribute(&code->registers_, kFunctionRegisters, code->function);
  if (result == 0 && source.is_loop) {
    // All blocks must be resident when they reach a grid barrier. One block per SM has the fastest
    // barrier.
    int at_a_time = 0;
    result =
        api_.max_active_blocks(&at_a_time, code->function, code->threads[0], code->dynamic_bytes);
    if (result == 0 && at_a_time == 0)
      return MakeError(ErrorCode::kCudaText,
                       fmt::format("kernel {}: no multiprocessor has room for a block", label));
    int64_t all = std::max(info_.multiprocessors, 1), most = int64_t{at_a_time} * all;
    int64_t wanted = std::max(source.grid, std::min(source.side_by_side, all));
    code->grid = static_cast<unsigned>(std::min(wanted, most));
    code->has_condition = source.has_condition;
  }
  if (result != 0) return DeviceError(result, "kernel " + label);
  code->module = std::move(module);
  return std::shared_ptr<const LaunchCode>(std::move(code));
}

ImageOptions DriverGpu::OptionsOfImages() const {
  ImageOptions options;
  options.architecture = architecture_;
  options.driver = std::to_string(api_.supports);
  options.cache = DiskCache::OfProcess();
  return options;
}

// TK4120 if the device cannot run the asynchronous work of a launch.
Status DriverGpu::CheckAsync(const LaunchSource& source, const std::string& label) const {
  bool has_maps = source.source.maps.empty() || api_.encode_tensor_map != nullptr;
  if (!source.source.uses_async || (architecture_ == kHopper && has_maps)) return Ok();
  return MakeError(ErrorCode::kCudaText,
                   fmt::format("kernel {}: asynchronous work on {}{}", label, architecture_,
                               has_maps ? "" : " without cuTensorMapEncodeTiled"));
}

Status DriverGpu::LoadMissing(std::span<const LaunchForm* const> missing,
                              std::span<const std::string> names, bool ask_cache, CodeMap& made) {
  std::vector<LaunchSource> sources;
  std::vector<CudaSource> texts;
  for (size_t i = 0; i < missing.size(); ++i) {
    TOK_TRY(LaunchSource source, SourceOf(*missing[i], names[i]));
    TOK_RETURN_IF_ERROR(CheckAsync(source, missing[i]->label));
    texts.push_back(source.source);
    sources.push_back(std::move(source));
  }
  ImageOptions options = OptionsOfImages();
  options.ask_cache = ask_cache;
  TOK_TRY(std::vector<KernelImage> images, MakeImages(texts, options));
  std::unordered_map<const std::string*, std::shared_ptr<const LoadedModule>> modules;
  for (size_t i = 0; i < missing.size(); ++i) {
    std::shared_ptr<const LoadedModule>& module = modules[images[i].cubin.get()];
    if (module == nullptr) {
      TOK_TRY(module, LoadModule(images[i].cubin));
    }
    TOK_TRY(made[names[i]], MakeCode(sources[i], missing[i]->label, module));
  }
  return Ok();
}

// Equal launches share code, also across programs: codes_ holds weak references by name.
// Compilation runs without the lock, so two threads may compile the same launch; the last one is
// kept.
Result<std::vector<std::shared_ptr<const LaunchCode>>> DriverGpu::Load(
    std::span<const LaunchForm> forms) {
  TOK_RETURN_IF_ERROR(Enter());
  std::vector<std::string> names;
  CodeMap made;
  std::vector<const LaunchForm*> missing;
  std::vector<std::string> missing_names;
  {
    std::lock_guard<std::mutex> lock(code_mutex_);
    for (const LaunchForm& form : forms) {
      names.push_back(LaunchName(form));
      auto [at, is_new] = made.try_emplace(names.back());
      if (!is_new) continue;
      auto known = codes_.find(names.back());
      if (known != codes_.end()) at->second = known->second.lock();
      if (at->second != nullptr) continue;
      missing.push_back(&form);
      missing_names.push_back(names.back());
    }
  }
  if (!missing.empty()) {
    Status loaded = LoadMissing(missing, missing_names, true, made);
    // A cached entry may be damaged in ways that no checksum detects: retry without the cache.
    if (!loaded.ok() && loaded.error().code == ErrorCode::kDeviceFault &&
        DiskCache::OfProcess() != nullptr && !has_fault_.load())
      loaded = LoadMissing(missing, missing_names, false, made);
    if (!loaded.ok()) return std::move(loaded.error());
    std::lock_guard<std::mutex> lock(code_mutex_);
    for (const std::string& name : missing_names) codes_[name] = made[name];
    std::erase_if(codes_, [](const auto& entry) { return entry.second.expired(); });
  }
  std::vector<std::shared_ptr<const LaunchCode>> codes;
  for (const std::string& name : names) codes.push_back(made[name]);
  return codes;
}

Status DriverGpu::Launch(const LaunchCode& launch, std::span<void* const> pointers) {
  const auto& code = static_cast<const LoadedCode&>(launch);
  TOK_RETURN_IF_ERROR(Enter());
  LaunchParameters parameters;
  DeviceMemory table;
  void* table_at = nullptr;
  if (code.pointers == LaunchSource::Pointers::kMemory) {
    TOK_TRY(table, DeviceMemory::Take(*this, pointers.size_bytes(), "pointers of a launch"));
    TOK_RETURN_IF_ERROR(CopyIn(table.data(), pointers.data(), pointers.size_bytes()));
    table_at = table.data();
    parameters.SetTable(&table_at);
  } else {
    TOK_RETURN_IF_ERROR(parameters.Set(api_, code, pointers));
  }
  NoteLaunch(code.label);
  int result =
      api_.launch(code.function, code.grid, 1, 1, static_cast<unsigned>(code.threads[0]),
                  static_cast<unsigned>(code.threads[1]), static_cast<unsigned>(code.threads[2]),
                  code.dynamic_bytes, stream_, parameters.data(), nullptr);
  if (result != 0) [[unlikely]]
    return DeviceError(result, "kernel " + *code.label);
  return Ok();
}

Result<LoopEnd> DriverGpu::LaunchLoop(const LaunchCode& launch, std::span<void* const> pointers,
                                      const LoopChunk& chunk) {
  const auto& code = static_cast<const LoadedCode&>(launch);
  TOK_RETURN_IF_ERROR(Enter());
  // Per launch: another thread may launch the same code.
  TOK_TRY(DeviceMemory memory, DeviceMemory::Take(*this, kLoopMemory, "a loop in one launch"));
  TOK_RETURN_IF_ERROR(Fill(memory.data(), 0, kLoopMemory));
  void* barrier = memory.data();
  long long iterations = chunk.iterations;
  int odd = chunk.odd ? 1 : 0, closes = chunk.closes ? 1 : 0;
  void* parameters[] = {const_cast<void**>(pointers.data()), &barrier, &iterations, &odd, &closes};
  NoteLaunch(code.label);
  int result =
      api_.launch_together(code.function, code.grid, 1, 1, static_cast<unsigned>(code.threads[0]),
                           1, 1, code.dynamic_bytes, stream_, parameters);
  if (result != 0) return DeviceError(result, "kernel " + *code.label);
  if (!code.has_condition) return LoopEnd{chunk.iterations, false};
  std::array<int64_t, 2> end{};
  TOK_RETURN_IF_ERROR(CopyOut(end.data(), memory.data() + kLoopMemory - sizeof end, sizeof end));
  return LoopEnd{end[0], end[1] != 0};
}

// ---- products

bool DriverGpu::HasMatrixMultiply() {
  return Enter().ok() && CublasLt::Open().ok();
}

Result<std::shared_ptr<const ProductCode>> DriverGpu::LoadProduct(const MatrixProduct& product,
                                                                  const ProductKind& kind) {
  TOK_RETURN_IF_ERROR(Enter());
  TOK_TRY(const CublasLt* lt, CublasLt::Open());
  return lt->Prepare(product, kind);
}

Result<std::shared_ptr<const ProductCode>> DriverGpu::LoadConvolution(
    const Convolution& convolution) {
  TOK_RETURN_IF_ERROR(Enter());
  TOK_TRY(Cudnn * cudnn, Cudnn::Open());
  return cudnn->Prepare(convolution);
}

Status DriverGpu::Multiply(const ProductCode& code, const ProductArrays& arrays) {
  TOK_RETURN_IF_ERROR(Enter());
  if (code.IsConvolution()) {
    TOK_TRY(Cudnn * cudnn, Cudnn::Open());
    TOK_TRY(DeviceMemory workspace,
            DeviceMemory::Take(*this, Cudnn::WorkspaceOf(code), "workspace of convolutions"));
    return cudnn->Run(code, arrays, workspace.data(), stream_);
  }
  TOK_TRY(const CublasLt* lt, CublasLt::Open());
  TOK_TRY(DeviceMemory workspace,
          DeviceMemory::Take(*this, CublasLt::WorkspaceOf(code), "workspace of products"));
  return lt->Run(code, arrays, workspace.data(), stream_);
}

}  // namespace tokamak::cuda
