#include "rewrite/normal/mesh_text.h"

namespace tokamak {
namespace {

// Writes items separated by commas.
class List {
 public:
  explicit List(std::string& out) : out_(out) {}
  std::string& Next() {
    if (!first_) out_ += ", ";
    first_ = false;
    return out_;
  }

 private:
  std::string& out_;
  bool first_ = true;
};

void AppendAxis(std::string& out, const AxisRef& axis) {
  out += '"' + axis.name + '"';
  if (axis.size != 0) out += ":(" + std::to_string(axis.pre_size) + ")" + std::to_string(axis.size);
}

void AppendDim(std::string& out, const DimSharding& dim) {
  out += '{';
  List axes(out);
  for (const AxisRef& axis : dim.axes) AppendAxis(axes.Next(), axis);
  if (!dim.is_closed) axes.Next() += '?';
  out += '}';
  if (dim.priority >= 0) out += 'p' + std::to_string(dim.priority);
}

void AppendAxes(std::string& out, const char* name, const std::vector<AxisRef>& axes) {
  if (axes.empty()) return;
  out += std::string(", ") + name + "={";
  List list(out);
  for (const AxisRef& axis : axes) AppendAxis(list.Next(), axis);
  out += '}';
}

}  // namespace

std::string ShardingsText(const std::vector<Sharding>& shardings) {
  std::string out = "#sdy.sharding_per_value<[";
  List values(out);
  for (const Sharding& sharding : shardings) {
    values.Next() += "<@" + sharding.mesh + ", [";
    List dims(out);
    for (const DimSharding& dim : sharding.dims) AppendDim(dims.Next(), dim);
    out += ']';
    AppendAxes(out, "replicated", sharding.replicated);
    AppendAxes(out, "unreduced", sharding.unreduced);
    out += '>';
  }
  return out + "]>";
}

std::string ManualAxesText(const std::vector<std::string>& axes) {
  std::string out = "#sdy<manual_axes{";
  List names(out);
  for (const std::string& axis : axes) names.Next() += '"' + axis + '"';
  return out + "}>";
}

}  // namespace tokamak
