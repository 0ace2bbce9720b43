#include "gen/strides.h"

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "gen/element.h"
#include "kernel/linear.h"

namespace tokamak {
namespace {

// Bytes. Chosen: an input of half an L1 cache of 32 KiB stays there and needs no tiles. Elements.
// Chosen: a shorter dimension does not fill a vector of a square.
constexpr int64_t kSmallInput = 16384, kLeastTransposed = 4;

// Opens a loop for each dimension around `body`.
void ForAll(KernelBuilder& b, const Dims& domain, Coordinates& at,
            const std::function<void()>& body) {
  if (at.size() == domain.size()) return body();
  b.For("d", LoopRole::kSerial, b.Index(domain[at.size()]), [&](Scalar i) {
    at.push_back(i);
    ForAll(b, domain, at, body);
  });
}

// Whether an instruction reads its operands without exchanging dimensions: if the last dimension of
// the result moves the index of an operand, it moves it by one element.
bool KeepsOrder(const Instr& instr) {
  if (instr.op() == Op::kIota || instr.op() == Op::kConstant) return true;
  if (instr.op() == Op::kBroadcast)
    return std::ranges::is_sorted(instr.attrs<DimensionsAttrs>().dimensions);
  return instr.info().Is(kElementwise) &&
         std::ranges::all_of(instr.operands(), [&](const Instr* operand) {
           return operand->shape().IsScalar() || operand->shape().dims() == instr.shape().dims();
         });
}

// Quick check for every region that may be a loop: most have no transposed input.
bool MayReadTransposed(const FusedRegion& region, const Dims& domain) {
  bool has_long = std::any_of(domain.begin(), domain.end() - 1,
                              [](int64_t size) { return size >= kLeastTransposed; });
  return has_long &&
         std::ranges::any_of(region.inputs,
                             [](const Instr* input) {
                               return input->shape().IsArray() &&
                                      input->shape().ByteSize() > kSmallInput;
                             }) &&
         !std::ranges::all_of(region.instrs, [](const Instr* instr) { return KeepsOrder(*instr); });
}

}  // namespace

std::vector<LoadStrides> StridesOfLoads(const FusedRegion& region, const Dims& domain) {
  KernelBuilder b("strides");
  ElementEmitter emitter(b, region);
  Coordinates at;
  ForAll(b, domain, at, [&] {
    for (const Instr* root : region.roots) {
      bool updates = root->op() == Op::kDynamicUpdateSlice;
      emitter.At(updates ? *root->operand(1) : *root, at);
    }
  });
  std::vector<LoadStrides> loads;
  const Kernel& kernel = b.kernel();
  for (const ScalarNode& node : kernel.nodes) {
    if (node.prim != Prim::kLoad) continue;
    auto number = static_cast<size_t>(node.array());
    if (number >= region.inputs.size()) continue;
    LoadStrides load{region.inputs[number], true, Dims(domain.size(), 0)};
    std::optional<LinearIndex> index = LinearOf(kernel, node.operands[0]);
    load.is_affine = index.has_value();
    if (index) load.base = index->constant;
    for (size_t t = 0; index && t < index->terms.size(); ++t) {
      auto [value, factor] = index->terms[t];
      size_t d = 0;
      while (d < at.size() && at[d].id() != value) ++d;
      if (d < at.size()) {
        load.strides[d] = factor;
      } else {
        load.is_affine = false;
      }
    }
    loads.push_back(std::move(load));
  }
  return loads;
}

TransposedInput FindTransposedInput(const FusedRegion& region, const Dims& domain) {
  TransposedInput transposed_input;
  if (domain.size() < 2 || !MayReadTransposed(region, domain)) return transposed_input;
  int64_t bytes = kSmallInput;
  std::vector<LoadStrides> loads = StridesOfLoads(region, domain);
  for (const LoadStrides& load : loads) {
    int64_t size = load.input->shape().ByteSize();
    if (!load.is_affine || size <= bytes) continue;
    int64_t unit = IsComplex(load.input->shape().type()) ? 2 : 1;
    if (std::abs(load.strides.back()) <= unit) continue;
    for (size_t d = 0; d + 1 < domain.size(); ++d) {
      if (std::abs(load.strides[d]) != unit || domain[d] < kLeastTransposed) continue;
      transposed_input = {load.input, d, load.strides, load.base, true};
      bytes = size;
    }
  }
  int64_t uses = std::count_if(loads.begin(), loads.end(), [&](const LoadStrides& load) {
    return load.input == transposed_input.input;
  });
  transposed_input.is_only_load = uses == 1;
  return transposed_input;
}

}  // namespace tokamak
