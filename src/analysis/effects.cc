#include "analysis/effects.h"

#include <algorithm>

namespace tokamak {
namespace {

// Ops that may have a side effect themselves.
bool MayAct(const OpInfo& info) {
  switch (info.op) {
    case Op::kRng:         // draws from a hidden state
    case Op::kCustomCall:  // depends on its attributes
    case Op::kAsyncStart:  // start and done must stay paired
    case Op::kAsyncUpdate:
    case Op::kAsyncDone:
    case Op::kCopyStart:
    case Op::kCopyDone:
      return true;
    default:
      return info.Is(kSideEffect);
  }
}

// Not counting its callees.
bool HasOwnEffect(const Instr& instr) {
  if (instr.op() == Op::kCustomCall && !instr.info().Is(kSideEffect))
    return instr.attrs<CustomCallAttrs>().has_side_effect;
  return MayAct(instr.info());
}

// Whether the computation contains an instruction that may have a side effect.
bool MayAct(const Computation& computation) {
  return computation.has_callers() || std::ranges::any_of(AllOps(), [&](const OpInfo& info) {
           return computation.CountOf(info.op) > 0 && MayAct(info);
         });
}

}  // namespace

bool IsPlain(const Instr& instr) {
  constexpr uint16_t kAsksMore = kSideEffect | kControlFlow | kCollective | kRandom;
  if (instr.op() == Op::kRngBitGenerator) return true;  // a function of its state
  if ((instr.info().traits & kAsksMore) != 0 || HasOwnEffect(instr)) return false;
  switch (instr.op()) {
    case Op::kParameter:
    case Op::kPartitionId:
    case Op::kReplicaId:
    case Op::kAfterAll:  // tokens express an order
    case Op::kAddDependency:
    case Op::kOptimizationBarrier:
    case Op::kShardingConstraint:  // directives for the partitioner
    case Op::kReshard:
    case Op::kPropagationBarrier:
    case Op::kDomain:
      return false;
    default:
      return true;
  }
}

bool Commutes(const Instr& instr) {
  if (!IsCommutative(instr.op()) || instr.operand_count() != 2) return false;
  ElementType type = instr.shape().type();
  return !IsComplex(type);
}

Effects::Effects(const Module& module) {
  for (const Computation* computation : module.CalleesFirst()) {
    bool found = false;
    if (MayAct(*computation))
      for (const Instr* instr : computation->Instrs()) found = found || Of(*instr);
    known_.emplace(computation, found);
  }
}

bool Effects::Of(const Instr& instr) const {
  if (HasOwnEffect(instr)) return true;
  for (const Computation* callee : instr.called()) {
    auto it = known_.find(callee);
    if (it == known_.end() || it->second) return true;
  }
  return false;
}

}  // namespace tokamak
