#include "text/mlir_attributes.h"

#include <algorithm>

#include "ir/visit_attrs.h"
#include "text/mlir_attribute_table.h"

namespace tokamak {
namespace {

template <typename A>
Attrs ReadMlirAttrs(MlirAttrReader& in) {
  A attrs = MlirDefault<A>();
  VisitMlirRows<A>(in.op(), [&](const auto& row) { row.value.Read(row.facts, in, attrs); });
  return attrs;
}

// Calls fn(facts) for each attribute of the op.
template <typename Fn>
void VisitFacts(Op op, Fn fn) {
  VisitAttrs(op, Attrs{}, [&]<typename A>(const A&) {
    VisitMlirRows<A>(op, [&](const auto& row) { fn(row.facts); });
  });
}

}  // namespace

void MlirAttrWriter::Put(const MlirRowFacts& row, AttrValue value) {
  AttrDict& fields = row.record.name.empty() ? dict_ : Open(row.record);
  Set(fields, std::string(row.name), std::move(value));
}

AttrDict& MlirAttrWriter::Open(const MlirRecordName& record) {
  if (Find(dict_, record.name) == nullptr)
    Set(dict_, std::string(record.name), {RecordAttr{std::string(record.kind), {}}});
  auto it = std::find_if(dict_.begin(), dict_.end(),
                         [&](const AttrEntry& entry) { return entry.name == record.name; });
  return std::get<RecordAttr>(it->value.value).fields;
}

MlirConverter ConverterOf(Op op) {
  return VisitAttrs(op, Attrs{},
                    []<typename A>(const A&) -> MlirConverter { return &ReadMlirAttrs<A>; });
}

AttrDict MlirAttrsOf(const Instr& instr) {
  MlirAttrWriter out(instr.op());
  VisitAttrs(instr.op(), instr.attrs(), [&]<typename A>(const A& attrs) {
    VisitMlirRows<A>(instr.op(), [&](const auto& row) {
      if (!row.facts.obsolete) row.value.Write(row.facts, attrs, out);
    });
  });
  return out.Take();
}

std::vector<MlirKeyword> MlirKeywordsOf(Op op) {
  std::vector<MlirKeyword> keywords;
  VisitFacts(op, [&](const MlirRowFacts& row) {
    if (!row.printed.empty()) keywords.push_back({row.printed, row.name});
  });
  return keywords;
}

int NewestVhloVersion(Op op) {
  // Version 2 of these accepts several operands or regions; the properties are the same.
  constexpr Op kSecond[] = {Op::kAllGather, Op::kAllReduce, Op::kAllToAll, Op::kComposite};
  int newest = std::find(std::begin(kSecond), std::end(kSecond), op) == std::end(kSecond) ? 1 : 2;
  VisitFacts(op, [&](const MlirRowFacts& row) {
    newest = std::max(newest, row.obsolete ? 2 : row.since);
  });
  return newest;
}

std::vector<std::string_view> VhloPropertiesOf(Op op, int version) {
  std::vector<std::string_view> names;
  VisitFacts(op, [&](const MlirRowFacts& row) {
    if (version < row.since || (row.obsolete && version > 1)) return;
    for (std::string_view rest = row.vhlo; !rest.empty();) {
      size_t end = std::min(rest.find(' '), rest.size());
      names.push_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  });
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tokamak
