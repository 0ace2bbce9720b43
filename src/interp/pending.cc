// Ops whose evaluators are not written yet: TK5001. A line goes when the real one lands.

#include "interp/evaluators.h"

namespace tokamak {

#define TOK_PENDING(id)                                                          \
  Result<Value> Eval##id(const Instr& instr, std::span<const Value>, Context&) { \
    return Unsupported(instr, "the interpreter has no evaluator for it yet");    \
  }

TOK_PENDING(PartitionId)
TOK_PENDING(ReplicaId)
TOK_PENDING(CustomCall)
TOK_PENDING(AsyncStart)
TOK_PENDING(AsyncUpdate)
TOK_PENDING(AsyncDone)
TOK_PENDING(CopyStart)
TOK_PENDING(CopyDone)
TOK_PENDING(Infeed)
TOK_PENDING(Outfeed)
TOK_PENDING(Send)
TOK_PENDING(SendDone)
TOK_PENDING(Recv)
TOK_PENDING(RecvDone)
TOK_PENDING(AllGather)
TOK_PENDING(AllGatherStart)
TOK_PENDING(AllGatherDone)
TOK_PENDING(AllReduce)
TOK_PENDING(AllReduceStart)
TOK_PENDING(AllReduceDone)
TOK_PENDING(ReduceScatter)
TOK_PENDING(AllToAll)
TOK_PENDING(RaggedAllToAll)
TOK_PENDING(CollectiveBroadcast)
TOK_PENDING(CollectiveReduce)
TOK_PENDING(CollectivePermute)
TOK_PENDING(CollectivePermuteStart)
TOK_PENDING(CollectivePermuteDone)
TOK_PENDING(ShardingConstraint)
TOK_PENDING(Reshard)
TOK_PENDING(ShardingGroup)
TOK_PENDING(PropagationBarrier)
TOK_PENDING(ManualComputation)
TOK_PENDING(Check)
TOK_PENDING(CheckEq)
TOK_PENDING(RunParallel)
TOK_PENDING(Probe)
TOK_PENDING(Print)

#undef TOK_PENDING

}  // namespace tokamak
