#include "driver/compiled_program.h"

#include "driver/array_bytes.h"

namespace tokamak {

Result<bool> CanBeLowered(const Module& module, const CompileOptions& options, DecisionLog& log) {
  std::string why = options.num_replicas * options.num_partitions > 1
                        ? "the program runs on several devices"
                        : WhyNotLowered(module);
  if (why.empty()) return true;
  if (options.require_kernels)
    return MakeError(ErrorCode::kNoKernel,
                     "compile: kernels are required, but the interpreter runs all of it: " + why,
                     {.file = module.file});
  log.Add({.pass = "lower",
           .rule = "host.program",
           .subject = module.name(),
           .because = "the interpreter runs all of it: " + why});
  return false;
}

LowerOptions LowerOptionsOf(const CompileOptions& options, const FusionChoice& fusion,
                            const std::vector<ParameterInfo>& parameters) {
  LowerOptions lower;
  for (const ParameterInfo& parameter : parameters)
    lower.alias_results.push_back(parameter.alias_result);
  lower.strict = options.strict;
  lower.poison = options.check_memory;
  if (options.short_chunks) lower.chunk_rounds = 3;
  lower.plan.mode = fusion.mode;
  lower.plan.effort = fusion.effort;
  lower.plan.pin_words = fusion.pins;
  lower.plan.packs = PackModeNamed(options.packs).value_or(PackMode::kNone);
  return lower;
}

Result<std::vector<std::byte>> BytesOfConstant(const Instr& constant) {
  TOK_TRY(Value value, ValueFromLiteral(constant.attrs<ConstantAttrs>().literal));
  std::vector<std::byte> bytes(static_cast<size_t>(constant.shape().ByteSize()));
  StoreBytes(value.WithShape(constant.shape().WithoutLayout()), bytes.data());
  return bytes;
}

MemoryAnalysis MemoryOf(const std::vector<ParameterInfo>& parameters,
                        const std::vector<ArrayInfo>& results, int64_t arena_bytes) {
  MemoryAnalysis memory;
  for (const ParameterInfo& parameter : parameters) {
    memory.arguments += parameter.bytes;
    if (parameter.alias_result >= 0) memory.aliased += parameter.bytes;
  }
  for (const ArrayInfo& result : results) memory.results += result.bytes;
  memory.temporary = arena_bytes;
  return memory;
}

}  // namespace tokamak
