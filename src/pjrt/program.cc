// Programs: compiled, kept, written and read back.

#include <cstring>

#include "pjrt/executable.h"
#include "support/bytes.h"
#include "support/hash.h"
#include "text/read.h"

namespace tokamak {
namespace {

constexpr std::string_view kMagic = "TOKEXE1\n";

std::string Hex(uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

void Describe(Program& program) {
  const Executable& executable = *program.executable;
  program.name = executable.name();
  const CostAnalysis& cost = executable.cost();
  program.cost.AddFloat("flops", static_cast<float>(cost.flops));
  program.cost.AddFloat("transcendentals", static_cast<float>(cost.transcendentals));
  program.cost.AddFloat("bytes accessed", static_cast<float>(cost.bytes_accessed));
  for (const ArrayInfo& result : executable.results()) {
    program.result_types.push_back(TypeToPjrt(result.type));
    program.result_dims.insert(program.result_dims.end(), result.dims.begin(), result.dims.end());
    program.result_ranks.push_back(result.dims.size());
    program.result_kinds.push_back(result.memory_kind.c_str());
    program.result_kind_sizes.push_back(result.memory_kind.size());
  }
  for (const ParameterInfo& parameter : executable.parameters()) {
    program.parameter_kinds.push_back(parameter.memory_kind.c_str());
    program.parameter_kind_sizes.push_back(parameter.memory_kind.size());
  }
}

std::string FingerprintOf(std::string_view code, std::string_view options) {
  Hasher hasher;
  hasher.Add(std::string_view(PlatformVersion()));
  hasher.Add(code);
  hasher.Add(options);
  return Hex(hasher.digest());
}

}  // namespace

Result<std::shared_ptr<const Program>> CompileProgram(std::string_view code,
                                                      std::string_view options) {
  TOK_TRY(PjrtCompileOptions read, ReadCompileOptions(options));
  auto program = std::make_shared<Program>();
  program->bytes = Bytes::FromString(std::string(code));
  program->options = options;
  program->fingerprint = FingerprintOf(code, options);
  TOK_TRY(std::unique_ptr<Module> module, ReadModule(program->bytes, "program"));
  CompileOptions compile;
  compile.num_replicas = read.num_replicas;
  compile.num_partitions = read.num_partitions;
  TOK_TRY(program->executable, Compile(std::move(module), compile));
  Describe(*program);
  return std::shared_ptr<const Program>(std::move(program));
}

std::string SerializeProgram(const Program& program) {
  std::string body;
  for (std::string_view part : {std::string_view(PlatformVersion()),
                                std::string_view(program.options), program.bytes.text()}) {
    uint64_t size = part.size();
    body.append(reinterpret_cast<const char*>(&size), sizeof size);
    body += part;
  }
  Hasher hasher;
  hasher.Add(std::string_view(body));
  uint64_t check = hasher.digest();
  std::string out(kMagic);
  out.append(reinterpret_cast<const char*>(&check), sizeof check);
  return out + body;
}

Result<std::shared_ptr<const Program>> DeserializeProgram(std::string_view bytes) {
  auto bad = [](const char* why) {
    return MakeError(ErrorCode::kSerializedProgram, std::string("serialized executable: ") + why);
  };
  uint64_t check = 0;
  if (bytes.size() < kMagic.size() + sizeof check || bytes.substr(0, kMagic.size()) != kMagic)
    return bad("the bytes are not of one");
  std::memcpy(&check, bytes.data() + kMagic.size(), sizeof check);
  bytes.remove_prefix(kMagic.size() + sizeof check);
  Hasher hasher;
  hasher.Add(bytes);
  if (hasher.digest() != check) return bad("the bytes are damaged");
  std::string_view parts[3];
  for (std::string_view& part : parts) {
    uint64_t size = 0;
    if (bytes.size() < sizeof size) return bad("the bytes are cut off");
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    if (size > bytes.size()) return bad("the bytes are cut off");
    part = bytes.substr(0, size);
    bytes.remove_prefix(size);
  }
  if (parts[0] != PlatformVersion()) return bad("it was made by another version of Tokamak");
  return CompileProgram(parts[2], parts[1]);
}

}  // namespace tokamak
