#include "backend/cuda/images.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "backend/cuda/library_paths.h"
#include "backend/cuda/nvrtc.h"

namespace tokamak::cuda {
namespace {

// Kernels and bytes of text per batch, and concurrent NVRTC programs, at most. Compiling kernels
// together is faster (NVRTC has a startup cost), but small batches use more threads; beyond a few
// threads NVRTC serializes. Chosen (docs/choices/2026-11-16-cuda-backend.md).
constexpr size_t kMostBatch = 32, kImageMostBytes = size_t{32} << 10, kMostPrograms = 8;

// The first kernel of each batch, and the end.
std::vector<size_t> BatchesOf(const std::vector<size_t>& bytes, size_t threads) {
  size_t programs = std::min(threads, kMostPrograms);
  size_t most = std::min((bytes.size() + programs - 1) / programs, kMostBatch);
  std::vector<size_t> begins = {0};
  size_t total = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i > begins.back() && (i - begins.back() >= most || total + bytes[i] > kImageMostBytes)) {
      begins.push_back(i);
      total = 0;
    }
    total += bytes[i];
  }
  begins.push_back(bytes.size());
  return begins;
}

struct Wanted {
  const CudaSource* source;
  std::string key;
  std::shared_ptr<const std::string> cubin;
};

std::string KeyOf(const CudaSource& source, const ImageOptions& options,
                  const std::string& compiler) {
  return CacheKey()
      .Add(options.architecture)
      .Add(options.driver)
      .Add(compiler)
      .Add(source.text)
      .bytes();
}

// A batch is cached under the digest of the keys of its kernels. The entry of each kernel, under
// its own key, refers to the batch.
constexpr std::string_view kKernelEntry = "cuda-kernel", kBatchEntry = "cuda-batch";

std::string BatchKey(std::span<Wanted* const> batch) {
  CacheKey key;
  for (const Wanted* wanted : batch) key.Add(wanted->key);
  return key.Digest();
}

void FindInCache(std::vector<Wanted>& all, DiskCache& cache) {
  std::unordered_map<std::string, std::shared_ptr<const std::string>> batches;
  for (Wanted& wanted : all) {
    std::optional<std::string> batch = cache.Get(kKernelEntry, wanted.key);
    if (!batch) continue;
    auto [at, is_new] = batches.try_emplace(*batch);
    if (is_new)
      if (std::optional<std::string> cubin = cache.Get(kBatchEntry, *batch))
        at->second = std::make_shared<const std::string>(std::move(*cubin));
    wanted.cubin = at->second;
  }
}

// Each kernel in a separate namespace: their types and tables have the same names.
CudaSource TextOf(std::span<Wanted* const> batch) {
  CudaSource source;
  source.name = batch[0]->source->name;
  for (size_t i = 0; i < batch.size(); ++i)
    source.text +=
        "namespace kernel_" + std::to_string(i) + " {\n" + batch[i]->source->text + "}\n\n";
  return source;
}

Status CompileBatch(std::span<Wanted* const> batch, const Nvrtc& nvrtc,
                    const ImageOptions& options) {
  TOK_TRY(CudaCode code, nvrtc.Compile(TextOf(batch), options.architecture));
  auto cubin = std::make_shared<const std::string>(std::move(code.cubin));
  for (Wanted* wanted : batch) wanted->cubin = cubin;
  if (options.cache == nullptr) return Ok();
  std::string key = BatchKey(batch);
  options.cache->Put(kBatchEntry, key, *cubin);
  for (const Wanted* wanted : batch) options.cache->Put(kKernelEntry, wanted->key, key);
  return Ok();
}

Status CompileAll(std::span<Wanted* const> missing, const ImageOptions& options) {
  TOK_TRY(const Nvrtc* nvrtc, Nvrtc::Open());
  size_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<size_t> bytes;
  for (const Wanted* wanted : missing) bytes.push_back(wanted->source->text.size());
  std::vector<size_t> begins = BatchesOf(bytes, threads);
  size_t batches = begins.size() - 1;
  std::vector<std::optional<Error>> errors(batches);
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < batches; i = next++) {
      Status status =
          CompileBatch(missing.subspan(begins[i], begins[i + 1] - begins[i]), *nvrtc, options);
      if (!status.ok()) errors[i] = std::move(status.error());
    }
  };
  std::vector<std::thread> others;
  try {
    for (size_t i = 1; i < std::min(threads, batches); ++i) others.emplace_back(work);
  } catch (const std::system_error&) {
    // Continue with fewer threads.
  }
  work();
  for (std::thread& thread : others) thread.join();
  for (std::optional<Error>& error : errors)
    if (error) return std::move(*error);
  return Ok();
}

}  // namespace

Result<std::vector<KernelImage>> MakeImages(std::span<const CudaSource> sources,
                                            const ImageOptions& options) {
  static const std::string compiler = LibraryIdentity("libnvrtc.so");
  std::unordered_map<std::string, size_t> numbers;
  std::vector<Wanted> all;
  std::vector<size_t> number_of;
  for (const CudaSource& source : sources) {
    std::string key = KeyOf(source, options, compiler);
    auto [at, is_new] = numbers.try_emplace(key, all.size());
    if (is_new) all.push_back({&source, std::move(key), nullptr});
    number_of.push_back(at->second);
  }
  if (options.cache != nullptr && options.ask_cache) FindInCache(all, *options.cache);
  std::vector<Wanted*> missing;
  for (Wanted& wanted : all)
    if (wanted.cubin == nullptr) missing.push_back(&wanted);
  if (!missing.empty()) TOK_RETURN_IF_ERROR(CompileAll(missing, options));
  std::vector<KernelImage> images;
  for (size_t i = 0; i < sources.size(); ++i)
    images.push_back({all[number_of[i]].cubin, sources[i].name});
  return images;
}

}  // namespace tokamak::cuda
