#include "text/bytecode_ops.h"

#include <string>
#include <unordered_map>

#include "text/mlir_attributes.h"

namespace tokamak {
namespace {

struct NamedRow {
  std::string_view name, reads_as, properties;
};

// Ops that are not in ops.def under their MLIR name. A '?' after a name marks an optional property.
constexpr NamedRow kRows[] = {
    {"builtin.module", "builtin.module", "sym_name? sym_visibility?"},
    {"builtin.unrealized_conversion_cast", "builtin.unrealized_conversion_cast", ""},
    {"sdy.mesh", "sdy.mesh", "mesh sym_name"},
    {"sdy.named_computation", "sdy.named_computation", "in_shardings? name out_shardings?"},
    {"sdy.return", "sdy.return", ""},
    {"vhlo.broadcast_v1", "stablehlo.broadcast", "broadcast_sizes"},
    {"vhlo.call_v1", "func.call", "callee"},
    {"vhlo.create_token_v1", "stablehlo.create_token", ""},
    {"vhlo.cross-replica-sum_v1", "stablehlo.cross-replica-sum", "replica_groups"},
    {"vhlo.dot_v1", "stablehlo.dot", "precision_config"},
    {"vhlo.func_v1", "func.func", "arg_attrs function_type res_attrs sym_name sym_visibility"},
    {"vhlo.if_v1", "stablehlo.if", ""},
    {"vhlo.return_v1", "stablehlo.return", ""},
};

BytecodeOpRow RowOf(const NamedRow& named) {
  BytecodeOpRow row;
  row.reads_as = named.reads_as;
  std::string_view rest = named.properties;
  while (!rest.empty()) {
    const size_t space = std::min(rest.find(' '), rest.size());
    std::string_view word = rest.substr(0, space);
    rest.remove_prefix(std::min(space + 1, rest.size()));
    const bool optional = word.ends_with('?');
    if (optional) word.remove_suffix(1);
    row.properties.push_back({word, optional});
  }
  return row;
}

BytecodeOpRow RowOf(const OpInfo& info, int version) {
  BytecodeOpRow row;
  row.reads_as = info.mlir;
  for (std::string_view name : VhloPropertiesOf(info.op, version)) row.properties.push_back({name});
  return row;
}

// The rows above, the ops of sdy, and each version of each StableHLO op.
const auto& Rows() {
  static const auto rows = [] {
    std::unordered_map<std::string, BytecodeOpRow> map;
    for (const NamedRow& row : kRows) map.emplace(row.name, RowOf(row));
    for (const OpInfo& info : AllOps()) {
      if (info.mlir.starts_with("sdy.")) map.emplace(info.mlir, RowOf(info, 1));
      if (!info.mlir.starts_with("stablehlo.")) continue;
      std::string name = "vhlo." + std::string(info.mlir.substr(10)) + "_v";
      for (int version = 1; version <= NewestVhloVersion(info.op); ++version)
        map.emplace(name + std::to_string(version), RowOf(info, version));
    }
    return map;
  }();
  return rows;
}

}  // namespace

const BytecodeOpRow* FindBytecodeOp(std::string_view dialect, std::string_view name) {
  auto it = Rows().find(std::string(dialect) + "." + std::string(name));
  return it == Rows().end() ? nullptr : &it->second;
}

Error UnknownOp(const BytecodeFile& file, const BytecodeFile::OpName& op, size_t offset) {
  std::string message = file.NameOf(op) + ": the op is not known";
  const size_t version = op.name.rfind("_v");
  if (file.dialects[op.dialect] == "vhlo" && version != std::string_view::npos) {
    // The versions of "gather_v1" and "gather_v2" share a prefix; the newest is the last one found.
    int newest = 0;
    for (int v = 1; v < 10; ++v) {
      std::string name = std::string(op.name.substr(0, version + 2)) + std::to_string(v);
      if (FindBytecodeOp("vhlo", name) != nullptr) newest = v;
    }
    if (newest > 0)
      message = file.NameOf(op) + ": the newest version of the op that is read is " +
                std::to_string(newest);
    message += "; the program was written by '" + std::string(file.producer) + "'";
  }
  return file.ErrorAt(ErrorCode::kBytecodeOp, std::move(message), offset);
}

Result<std::vector<BytecodeRef>> ReadProperties(const BytecodeFile& file, std::string_view op,
                                                const BytecodeOpRow& row,
                                                std::optional<BytecodeRef> properties,
                                                size_t offset) {
  std::vector<BytecodeRef> refs;
  if (!properties) {
    for (const BytecodeProperty& property : row.properties) {
      if (!property.optional) {
        return file.ErrorAt(ErrorCode::kBytecodeProperties,
                            std::string(op) + ": has no properties, " +
                                std::to_string(row.properties.size()) + " are expected",
                            offset);
      }
      refs.push_back({kAbsent, offset});
    }
    return refs;
  }
  if (properties->index >= file.properties.size()) {
    return file.ErrorAt(ErrorCode::kBytecodeIndex,
                        "bytecode: properties " + std::to_string(properties->index) + " of " +
                            std::to_string(file.properties.size()),
                        properties->from);
  }
  BytecodeCursor in = file.At(file.properties[properties->index]);
  refs.reserve(row.properties.size());
  for (const BytecodeProperty& property : row.properties) {
    const size_t from = in.offset();
    const uint64_t value = in.Varint();
    if (!property.optional) {
      refs.push_back({value, from});
    } else {
      refs.push_back({(value & 1) != 0 ? value >> 1 : kAbsent, from});
    }
  }
  if (in.failed() || in.left() > 0) {
    return file.ErrorAt(ErrorCode::kBytecodeProperties,
                        std::string(op) + ": its properties are " +
                            (in.failed() ? "fewer" : "more") + " than the " +
                            std::to_string(row.properties.size()) + " that the op has",
                        in.failed() ? in.failed_at() : in.offset());
  }
  return refs;
}

}  // namespace tokamak
