#include "text/bytecode_ops.h"

#include <string>
#include <unordered_map>

namespace tokamak {
namespace {

struct NamedRow {
  std::string_view name, reads_as, properties;
};

constexpr NamedRow kVhloRows[] = {
#define TOK_VHLO_OP(name, reads_as, properties) {name, reads_as, properties},
#include "text/vhlo_ops.def"
};

// A '?' after a name marks an optional property.
constexpr NamedRow kOtherRows[] = {
    {"builtin.module", "builtin.module", "sym_name? sym_visibility?"},
    {"builtin.unrealized_conversion_cast", "builtin.unrealized_conversion_cast", ""},
    {"sdy.manual_computation", "sdy.manual_computation", "in_shardings manual_axes out_shardings"},
    {"sdy.mesh", "sdy.mesh", "mesh sym_name"},
    {"sdy.named_computation", "sdy.named_computation", "in_shardings? name out_shardings?"},
    {"sdy.propagation_barrier", "sdy.propagation_barrier", "allowed_direction"},
    {"sdy.reshard", "sdy.reshard", "sharding"},
    {"sdy.return", "sdy.return", ""},
    {"sdy.sharding_constraint", "sdy.sharding_constraint", "sharding"},
    {"sdy.sharding_group", "sdy.sharding_group", "group_id"},
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

using RowMap = std::unordered_map<std::string_view, BytecodeOpRow>;
const RowMap& VhloRows() {
  static const RowMap rows = [] {
    RowMap map;
    for (const NamedRow& row : kVhloRows) map.emplace(row.name, RowOf(row));
    return map;
  }();
  return rows;
}
const RowMap& OtherRows() {
  static const RowMap rows = [] {
    RowMap map;
    for (const NamedRow& row : kOtherRows) map.emplace(row.name, RowOf(row));
    return map;
  }();
  return rows;
}

}  // namespace

const BytecodeOpRow* FindBytecodeOp(std::string_view dialect, std::string_view name) {
  const bool is_vhlo = dialect == "vhlo";
  const RowMap& rows = is_vhlo ? VhloRows() : OtherRows();
  const std::string full = is_vhlo ? std::string() : std::string(dialect) + "." + std::string(name);
  auto it = rows.find(is_vhlo ? name : std::string_view(full));
  return it == rows.end() ? nullptr : &it->second;
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
