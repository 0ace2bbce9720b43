// The CPU scatter generator: updates are combined into the array in place, in index order. Elements
// of one window never overlap, nor do windows of different batches, so the grid distributes chunks
// of windows and batches, and each grid iteration visits all windows:
//
//   for each batch and chunk of a window (grid)
//     for each index vector of the batch (serial)
//       if its window is in bounds: combine, vector by vector
//
// Windows that may overlap partially, and windows of one element, run on one thread.

#include <algorithm>

#include "gen/scatter_elements.h"

namespace tokamak {
namespace {

// Bytes of a batch up to which kInterleaved are interleaved. Chosen: both stay in the L2 cache. A
// third would rarely find the store of the first still pending.
constexpr int64_t kSmallBatch = 1 << 16, kInterleaved = 2;
// Chunks per core. Chosen: cores of unequal speed even out, while each chunk rereads all indices.
constexpr int64_t kScatterChunksPerCore = 2;

class ScatterBuilder {
 public:
  ScatterBuilder(const FusedRegion& region, const Machine& machine, const std::string& name)
      : region_(region),
        machine_(machine),
        b_(name),
        emitter_(b_, region),
        elements_(b_, emitter_, *region.roots[0]) {}

  BuildOutcome Build() {
    window_ = elements_.window_size();
    if (const Dims& dims = elements_.window_dims(); !dims.empty())
      while (lanes_ < machine_.Lanes(32) && dims.back() % (2 * lanes_) == 0) lanes_ *= 2;
    int64_t vectors = window_ / lanes_, batches = elements_.batch_count();
    windows_ = elements_.window_count() / batches;
    bool parallel = !elements_.WindowsMayPartlyOverlap() && batches < kManyBatches;
    chunk_ = parallel ? ChunkOf(vectors) : vectors;
    int64_t chunks = vectors / chunk_, together = TogetherOf(batches);
    BuiltKernel built;
    built.grid = batches / together * chunks;
    b_.For("g", LoopRole::kGrid, b_.Index(built.grid), [&](Scalar g) {
      Scalar batch = g / b_.Index(chunks), chunk = g % b_.Index(chunks);
      b_.For("i", LoopRole::kSerial, b_.Index(windows_), [&](Scalar i) {
        for (int64_t k = 0; k < together; ++k)
          CombineWindow(batch * b_.Index(together) + b_.Index(k), i, chunk);
      });
    });
    if (!emitter_.failure().empty()) return {std::nullopt, emitter_.failure()};
    built.kernel = b_.Finish();
    built.arguments = ArgumentsOf(region_);
    built.must_alias.emplace_back(built.arguments.size() - 1, region_.roots[0]->operand(0));
    return {std::move(built), ""};
  }

 private:
  // Combines a chunk of window i of a batch.
  void CombineWindow(Scalar batch, Scalar i, Scalar chunk) {
    Coordinates window_at = elements_.WindowCoordinates(batch, i);
    std::vector<Scalar> starts = elements_.Starts(window_at);
    if (!emitter_.failure().empty()) return;
    auto combine = [&](Scalar w) {
      auto one = [&](Scalar element) {
        elements_.Combine(window_at, starts, Delinearized(b_, element, elements_.window_dims()));
      };
      if (lanes_ == 1) return one(w);
      b_.For("l", LoopRole::kVector, b_.Index(lanes_),
             [&](Scalar l) { one(w * b_.Index(lanes_) + l); });
    };
    b_.If(elements_.IsInBounds(starts), [&] {
      Scalar first = chunk * b_.Index(chunk_);
      if (chunk_ == 1) return combine(first);
      b_.For("w", LoopRole::kSerial, b_.Index(chunk_), [&](Scalar w) { combine(first + w); });
    });
  }

  // Batches that one thread interleaves: a store to the same element soon after stalls the load,
  // one to another batch does not.
  int64_t TogetherOf(int64_t batches) const {
    const Shape& shape = region_.roots[0]->shape();
    bool small = window_ == 1 && shape.ByteSize() / batches <= kSmallBatch;
    return small && batches % kInterleaved == 0 && batches >= kManyBatches ? kInterleaved : 1;
  }

  // The largest chunk, in vectors, that leaves every thread several chunks.
  int64_t ChunkOf(int64_t vectors) const {
    int64_t chunk = std::max<int64_t>(1, vectors / (kScatterChunksPerCore * machine_.cores));
    while (vectors % chunk != 0) --chunk;
    return chunk;
  }

  const FusedRegion& region_;
  const Machine& machine_;
  KernelBuilder b_;
  ElementEmitter emitter_;
  ScatterElements elements_;
  int64_t window_ = 1, windows_ = 1, lanes_ = 1, chunk_ = 1;
};

}  // namespace

std::optional<std::string> WhyNoScatterKernel(const Instr& scatter) {
  // Operands of a scatter of one array: the array, indices and updates. By definition of the op.
  constexpr size_t kOperands = 3;
  if (scatter.operand_count() != kOperands || scatter.captures() > 0 || !scatter.shape().IsArray())
    return "scatter: of several arrays";
  ElementType type = scatter.shape().type();
  bool unmoved = scatter.attrs<ScatterAttrs>().scatter_dims_to_operand_dims.empty();
  for (const Instr* operand : scatter.operands())
    if (!IsPlainArray(operand->shape()) ||
        (operand->shape().ElementCount() == 0 && !(unmoved && operand == scatter.operand(1))))
      return "scatter: of an empty array";
  const Computation& body = *scatter.called(0);
  if (scatter.operand(0)->shape().type() != type || scatter.operand(2)->shape().type() != type ||
      body.parameters().size() != 2)
    return "scatter: of mixed types";
  KernelBuilder b("probe");
  std::vector<Element> arguments;
  for (const Instr* parameter : body.parameters()) {
    if (!parameter->shape().IsArray() || parameter->shape().type() != type)
      return "scatter: the parameter types of its computation differ from its operands";
    arguments.push_back(ConstantElement(b, type, 1));
  }
  if (!ApplyBody(b, body, arguments, false))
    return "scatter: its computation has no scalar formula";
  return std::nullopt;
}

BuildOutcome BuildScatter(const FusedRegion& region, const Machine& machine,
                          const std::string& name) {
  if (std::string why = WhyNotScatterRegion(region); !why.empty()) return {std::nullopt, why};
  return ScatterBuilder(region, machine, name).Build();
}

}  // namespace tokamak
