#include "backend/cuda/simulated_loop.h"

#include <cstring>

namespace tokamak::cuda {
namespace {

class LoopSimulator {
 public:
  LoopSimulator(const LoopShape& shape, std::span<const Kernel> kernels,
                std::span<void* const> pointers)
      : shape_(shape), kernels_(kernels), pointers_(pointers) {
    for (const Kernel& kernel : kernels) entries_.push_back({&kernel, 0});
    counts_ = PointersOf(shape, entries_);
  }

  Result<LoopEnd> Run(const LoopChunk& chunk) {
    LoopEnd end;
    for (; end.iterations < chunk.iterations; ++end.iterations) {
      bool is_odd = ((end.iterations + (chunk.odd ? 1 : 0)) & 1) != 0;
      kernel_ = 0;
      pointer_ = is_odd && shape_.alternates_buffers ? counts_.iteration : 0;
      TOK_RETURN_IF_ERROR(Phases(shape_.condition));
      if (shape_.has_condition()) {
        TOK_RETURN_IF_ERROR(GridBarrier());
        end.ended = *static_cast<const unsigned char*>(pointers_[pointer_++]) == 0;
        if (end.ended) break;
      }
      TOK_RETURN_IF_ERROR(Phases(shape_.body));
      TOK_RETURN_IF_ERROR(GridBarrier());
    }
    bool is_odd = ((end.iterations + (chunk.odd ? 1 : 0)) & 1) != 0;
    pointer_ = counts_.all - counts_.closing;
    if (is_odd && (end.ended || chunk.closes)) TOK_RETURN_IF_ERROR(Phases(shape_.closing));
    return end;
  }

 private:
  Status Phases(const std::vector<LoopShape::Phase>& phases) {
    for (const LoopShape::Phase& phase : phases) {
      if (phase.needs_barrier) TOK_RETURN_IF_ERROR(GridBarrier());
      if (phase.entries == 0) {
        std::memmove(pointers_[pointer_], pointers_[pointer_ + 1],
                     static_cast<size_t>(phase.bytes));
        pointer_ += 2;
      }
      for (size_t i = 0; i < phase.entries; ++i) {
        size_t count = kernels_[kernel_].ArgumentCount();
        std::span<void* const> own = pointers_.subspan(pointer_, count);
        open_.push_back(kernels_[kernel_++]);
        open_pointers_.insert(open_pointers_.end(), own.begin(), own.end());
        pointer_ += count;
      }
    }
    return Ok();
  }

  // Runs the pending kernels.
  Status GridBarrier() {
    if (!open_.empty()) TOK_RETURN_IF_ERROR(SimulateTogether(open_, open_pointers_));
    open_.clear();
    open_pointers_.clear();
    return Ok();
  }

  const LoopShape& shape_;
  std::span<const Kernel> kernels_;
  std::span<void* const> pointers_;
  std::vector<HorizontalKernel> entries_;
  LoopPointers counts_;
  size_t kernel_ = 0, pointer_ = 0;
  std::vector<Kernel> open_;
  std::vector<void*> open_pointers_;
};

}  // namespace

Result<SimReport> SimulateTogether(std::span<const Kernel> kernels,
                                   std::span<void* const> pointers) {
  std::vector<std::vector<SimArgument>> given;
  std::vector<SimLaunch> entries;
  size_t next = 0;
  for (const Kernel& kernel : kernels) {
    given.emplace_back();
    for (size_t i = 0; i < kernel.ArgumentCount(); ++i)
      given.back().push_back({pointers[next++], kernel.arrays[i].size});
  }
  for (size_t i = 0; i < kernels.size(); ++i) entries.push_back({&kernels[i], given[i]});
  return SimulateHorizontal(entries);
}

Result<LoopEnd> SimulateLoop(const LoopShape& shape, std::span<const Kernel> kernels,
                             std::span<void* const> pointers, const LoopChunk& chunk) {
  return LoopSimulator(shape, kernels, pointers).Run(chunk);
}

}  // namespace tokamak::cuda
