#include "driver/compile/interpreted.h"

#include "driver/compile/shard_map.h"

namespace tokamak {
namespace {

// Rough interpreter time per instruction and per result element, in microseconds (measured; the
// first runs correct the estimate).
constexpr double kMicrosPerInstr = 0.3, kMicrosPerElement = 0.02;

double EstimateCost(const Computation& computation) {
  double micros = 0;
  for (const Instr* instr : computation.Instrs()) {
    micros += kMicrosPerInstr;
    if (instr->shape().IsArray() && !instr->shape().HasDynamicDims())
      micros += kMicrosPerElement * static_cast<double>(instr->shape().ElementCount());
    if (instr->op() == Op::kWhile || instr->op() == Op::kDot || instr->op() == Op::kConvolution)
      micros += 1000;  // depends on operands, not on the result: wait for a measurement
  }
  return micros;
}

}  // namespace

Status CheckInterpreted(const Module& module, const TargetMesh& mesh) {
  if (mesh.replicas > 1)
    return MakeError(ErrorCode::kNeedsPartitioning,
                     "compile: " + std::to_string(mesh.replicas) +
                         " replicas: only partitions of one replica are supported",
                     {.file = module.file});
  const Instr* instr = mesh.devices() > 1 ? NeedsPartitioner(module) : nullptr;
  if (instr == nullptr) return Ok();
  return MakeError(
      ErrorCode::kNeedsPartitioning,
      std::string(instr->info().name) + ": it is partitioned over " +
          std::to_string(mesh.devices()) +
          " devices by sharding annotations, and automatic partitioning is not supported; "
          "use jax.shard_map, or one device",
      SpanOf(*instr));
}

// True for loops and branches of any kind, and for dynamic sizes.
bool InterpretedTimeDependsOnData(const Module& module) {
  for (const auto& computation : module.computations())
    for (const Instr* instr : computation->Instrs())
      if (instr->op() == Op::kWhile || instr->op() == Op::kConditional ||
          instr->shape().HasDynamicDims())
        return true;
  return false;
}

double InterpretedMicros(const Module& module) {
  double micros = 0;
  for (const auto& computation : module.computations()) micros += EstimateCost(*computation);
  return micros;
}

}  // namespace tokamak
