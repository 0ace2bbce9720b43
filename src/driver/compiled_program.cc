#include "driver/compiled_program.h"

#include "driver/array_bytes.h"

namespace tokamak {

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
