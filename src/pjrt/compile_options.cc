// CompileOptionsProto and DeviceAssignmentProto by field number:
// 3 executable_build_options {4 num_replicas, 5 num_partitions, 9 device_assignment,
//   20 exec_time_optimization_effort, a float},
// 4 compile_portable_executable, 7 env_option_overrides.

#include "pjrt/compile_options.h"

#include "pjrt/proto.h"

namespace tokamak {
namespace {

// Bound on devices, replicas and partitions in untrusted bytes (chosen).
constexpr int64_t kMaxListedDevices = 1 << 16;

// Accepts packed and unpacked lists.
Status ReadInts(const ProtoReader::Field& field, std::vector<int64_t>& out) {
  if (field.wire != ProtoReader::kLength) {
    out.push_back(field.AsInt());
    return Ok();
  }
  ProtoReader list = field.Message();
  while (!list.AtEnd()) {
    TOK_TRY(uint64_t value, list.Varint());
    if (static_cast<int64_t>(out.size()) >= kMaxListedDevices)
      return list.FormatError("more devices than " + std::to_string(kMaxListedDevices));
    out.push_back(static_cast<int64_t>(value));
  }
  return Ok();
}

// The proto lists computations with their replicas; the result lists replicas with their
// partitions.
Result<std::vector<int64_t>> ReadAssignment(const ProtoReader::Field& message) {
  int64_t replicas = 0, computations = 0;
  std::vector<std::vector<int64_t>> lists;
  ProtoReader reader = message.Message();
  while (!reader.AtEnd()) {
    TOK_TRY(ProtoReader::Field field, reader.Next());
    if (field.number == 1) replicas = field.AsInt();
    if (field.number == 2) computations = field.AsInt();
    if (field.number != 3 || field.wire != ProtoReader::kLength) continue;
    lists.emplace_back();
    ProtoReader list = field.Message();
    while (!list.AtEnd()) {
      TOK_TRY(ProtoReader::Field ids, list.Next());
      if (ids.number == 1) TOK_RETURN_IF_ERROR(ReadInts(ids, lists.back()));
    }
  }
  if (computations != static_cast<int64_t>(lists.size()))
    return reader.FormatError("a device assignment of " + std::to_string(computations) +
                              " computations lists " + std::to_string(lists.size()));
  std::vector<int64_t> devices;
  for (const std::vector<int64_t>& list : lists)
    if (static_cast<int64_t>(list.size()) != replicas)
      return reader.FormatError("a device assignment of " + std::to_string(replicas) +
                                " replicas lists " + std::to_string(list.size()));
  for (int64_t r = 0; r < replicas; ++r)
    for (const std::vector<int64_t>& list : lists) devices.push_back(list[static_cast<size_t>(r)]);
  return devices;
}

Status ReadBuildOptions(ProtoReader reader, PjrtCompileOptions& options) {
  while (!reader.AtEnd()) {
    TOK_TRY(ProtoReader::Field field, reader.Next());
    switch (field.number) {
      case 4:
        options.num_replicas = field.AsInt();
        break;
      case 5:
        options.num_partitions = field.AsInt();
        break;
      case 9: {
        options.device_assignment = field.data;
        TOK_TRY(options.devices, ReadAssignment(field));
        break;
      }
      case 20:
        // The value of jax.config goes first: options of a single call follow and override it.
        options.overrides.emplace(options.overrides.begin(), "exec_time_optimization_effort",
                                  double{field.AsFloat()});
        break;
      default:
        break;
    }
  }
  return Ok();
}

// An entry of map<string, {1 string, 2 bool, 3 int64, 4 double}>.
Status ReadOverride(ProtoReader reader, PjrtCompileOptions& options) {
  std::string name;
  OptionValue value;
  while (!reader.AtEnd()) {
    TOK_TRY(ProtoReader::Field field, reader.Next());
    if (field.number == 1) name = field.data;
    if (field.number != 2 || field.wire != ProtoReader::kLength) continue;
    ProtoReader inner = field.Message();
    while (!inner.AtEnd()) {
      TOK_TRY(ProtoReader::Field held, inner.Next());
      if (held.number == 1) value = std::string(held.data);
      if (held.number == 2) value = held.AsBool();
      if (held.number == 3) value = held.AsInt();
      if (held.number == 4) value = held.AsDouble();
    }
  }
  options.overrides.emplace_back(std::move(name), std::move(value));
  return Ok();
}

}  // namespace

Result<PjrtCompileOptions> ReadCompileOptions(std::string_view bytes) {
  PjrtCompileOptions options;
  ProtoReader reader(bytes);
  while (!reader.AtEnd()) {
    TOK_TRY(ProtoReader::Field field, reader.Next());
    if (field.number == 3) TOK_RETURN_IF_ERROR(ReadBuildOptions(field.Message(), options));
    if (field.number == 4) options.portable = field.AsBool();
    if (field.number == 7) TOK_RETURN_IF_ERROR(ReadOverride(field.Message(), options));
  }
  options.num_replicas = options.num_replicas == 0 ? 1 : options.num_replicas;
  options.num_partitions = options.num_partitions == 0 ? 1 : options.num_partitions;
  if (options.num_replicas < 1 || options.num_replicas > kMaxListedDevices ||
      options.num_partitions < 1 || options.num_partitions > kMaxListedDevices)
    return reader.FormatError(std::to_string(options.num_replicas) + " replicas of " +
                              std::to_string(options.num_partitions) + " partitions");
  if (!options.devices.empty() &&
      static_cast<int64_t>(options.devices.size()) != options.num_replicas * options.num_partitions)
    return reader.FormatError("the device assignment names " +
                              std::to_string(options.devices.size()) + " devices for " +
                              std::to_string(options.num_replicas) + " replicas of " +
                              std::to_string(options.num_partitions) + " partitions");
  return options;
}

std::string WriteDeviceAssignment(int64_t replicas, int64_t partitions,
                                  const std::vector<int64_t>& devices) {
  std::string out;
  PutInt(out, 1, replicas);
  PutInt(out, 2, partitions);
  for (int64_t p = 0; p < partitions; ++p) {
    std::string ids, list;
    for (int64_t r = 0; r < replicas; ++r)
      PutVarint(ids, static_cast<uint64_t>(devices[static_cast<size_t>(r * partitions + p)]));
    PutBytes(list, 1, ids);
    PutBytes(out, 3, list);
  }
  return out;
}

}  // namespace tokamak
