#include "text/mlir_plain.h"

#include "ir/visit_attrs.h"
#include "text/mlir_attribute_table.h"

namespace tokamak {

AttrDict ToPlainDict(Op op, const Attrs& attrs) {
  AttrValue value =
      VisitAttrs(op, attrs, [](const auto& record) { return EncodeAttr<true>(record); });
  return std::get<AttrDict>(std::move(value.value));
}

std::string FromPlainDict(Op op, const AttrDict& dict, Attrs& attrs) {
  return VisitAttrs(op, Attrs{}, [&]<typename A>(const A&) {
    A record;
    std::string problem = DecodeFields(dict, record);
    attrs = Attrs(std::move(record));
    return problem;
  });
}

AttrValue ToPlainAttr(const Sharding& sharding) {
  return EncodeAttr<true>(sharding);
}

std::optional<Sharding> PlainSharding(const AttrValue& value) {
  const auto* dict = value.As<AttrDict>();
  Sharding sharding;
  if (dict == nullptr || !DecodeFields(*dict, sharding).empty()) return std::nullopt;
  return sharding;
}

}  // namespace tokamak
