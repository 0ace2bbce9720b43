#include "fusion/chain_slices.h"

namespace tokamak {
namespace {

std::optional<ChainSlice> FindBestSlice(const Instr& last) {
  if (std::optional<ChainSlice> slice = ChainSliceOf(last, ChainReductions::kInside)) {
    DotChain chain;
    std::optional<DimsAlong> along;
    RunningChain running;
    if (FindDotChain(slice->instrs, chain, along).empty() &&
        AnalyzeRunningChain(chain, slice->instrs, *along, running).empty())
      return slice;
  }
  return ChainSliceOf(last, ChainReductions::kGiven);
}

}  // namespace

const ChainSlice* ChainSlices::BestOf(const Instr& last) {
  auto [it, is_new] = slices_.try_emplace(&last);
  if (is_new) it->second = FindBestSlice(last);
  return it->second ? &*it->second : nullptr;
}

}  // namespace tokamak
