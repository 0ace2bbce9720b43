#pragma once

// The rows of mlir_attributes.def. A row binds a field of an attribute struct to an MLIR attribute;
// each kind of row reads and writes it.

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "text/mlir_attribute_values.h"
#include "text/mlir_ops.h"

namespace tokamak {

enum class MlirPresence : uint8_t {
  kRequired,  // an error if absent
  kWritten,   // the default if absent; always written
  kOptional,  // the default if absent; written if it differs from it
};

// An attribute that groups others: dimension_numbers = #stablehlo.gather<...>. VHLO has the fields
// as separate attributes.
struct MlirRecordName {
  std::string_view name, kind;
};

// What a row says about its attribute, whatever its type.
struct MlirRowFacts {
  std::string_view name;
  MlirPresence presence = MlirPresence::kOptional;
  std::string_view type = {};     // for EncodeAttr
  MlirRecordName record = {};     // that contains it; none if empty
  std::string_view printed = {};  // keyword in the op's printed form
  std::string_view vhlo = {};     // names in VHLO, separated by blanks; "" if not in VHLO
  int since = 1;                  // first version of the VHLO op that has it
  bool obsolete = false;          // only in version 1 of the VHLO op, and never written
  std::array<Op, 4> ops = {};
  size_t op_count = 0;  // 0: all ops with this attribute struct

  constexpr bool Applies(Op op) const {
    for (size_t i = 0; i < op_count; ++i)
      if (ops[i] == op) return true;
    return op_count == 0;
  }
};

// The attributes of an op as they are written.
class MlirAttrWriter {
 public:
  explicit MlirAttrWriter(Op op) : op_(op) {}
  Op op() const { return op_; }
  void Put(const MlirRowFacts& row, AttrValue value);
  // The fields of a record, which is added if necessary.
  AttrDict& Open(const MlirRecordName& record);
  AttrDict Take() { return std::move(dict_); }

 private:
  Op op_;
  AttrDict dict_;
};

template <typename Value>
struct MlirRow {
  MlirRowFacts facts;
  Value value;

  template <typename... Ops>
  constexpr MlirRow For(Ops... ops) const {
    return With(&MlirRowFacts::ops, {ops...}).With(&MlirRowFacts::op_count, sizeof...(ops));
  }
  constexpr MlirRow As(std::string_view type) const { return With(&MlirRowFacts::type, type); }
  constexpr MlirRow In(MlirRecordName record) const { return With(&MlirRowFacts::record, record); }
  constexpr MlirRow Printed(std::string_view keyword) const {
    return With(&MlirRowFacts::printed, keyword);
  }
  constexpr MlirRow Vhlo(std::string_view names) const { return With(&MlirRowFacts::vhlo, names); }
  constexpr MlirRow NotVhlo() const { return Vhlo(""); }
  constexpr MlirRow Since(int version) const { return With(&MlirRowFacts::since, version); }
  constexpr MlirRow Obsolete() const { return With(&MlirRowFacts::obsolete, true); }

 private:
  template <typename T>
  constexpr MlirRow With(T MlirRowFacts::*fact, std::type_identity_t<T> value) const {
    MlirRow row = *this;
    row.facts.*fact = value;
    return row;
  }
};

// The attributes of an op for which the program specifies none.
template <typename A>
A MlirDefault() {
  return A{};
}
template <>
CustomCallAttrs MlirDefault();
template <>
SortAttrs MlirDefault();

// Values that are equivalent to absent ones: default precisions, layouts of no value.
template <typename T>
void Normalize(T&) {}
template <typename T>
void Normalize(std::optional<std::vector<T>>& list) {
  if (list && list->empty()) list.reset();
}
inline void Normalize(std::vector<Precision>& list) {
  if (std::count(list.begin(), list.end(), Precision::kDefault) == std::ssize(list)) list.clear();
}

// ---- kinds of rows

// field(attrs) is a reference to the value.
template <typename F>
struct MlirField {
  F field;

  template <typename A>
  void Read(const MlirRowFacts& row, MlirAttrReader& in, A& attrs) const {
    using T = std::remove_reference_t<decltype(field(attrs))>;
    T& out = field(attrs);
    const AttrValue* value =
        row.record.name.empty() ? in.Take(row.name) : in.TakeField(row.record.name, row.name);
    if (value != nullptr) {
      if constexpr (std::is_same_v<T, Dims>)
        if (!row.type.empty()) return void(out = {in.Of<int64_t>(row.name, *value)});
      out = in.Of<T>(row.name, *value);
      Normalize(out);
    }
    bool missing = value == nullptr;
    if constexpr (std::is_same_v<T, std::string>) missing = missing || out.empty();
    if (missing && row.presence == MlirPresence::kRequired) in.Missing(row.name);
  }
  template <typename A>
  void Write(const MlirRowFacts& row, const A& attrs, MlirAttrWriter& out) const {
    const auto& value = field(attrs);
    const A normal = MlirDefault<A>();
    if (row.presence != MlirPresence::kOptional || !(value == field(normal)))
      out.Put(row, EncodeAttr(value, row.type));
  }
};

// Whether a list of `size` entries describes the dimensions of a window. An empty one does not and
// is ignored. If `grows`, a longer list adds dimensions.
bool FitsWindow(MlirAttrReader& in, std::string_view name, size_t size, bool grows, Window& window);

// A number per dimension of a window, or with `high` a pair of numbers.
template <typename A, typename T>
struct MlirColumn {
  Window A::*window;
  T WindowDim::*low;
  T WindowDim::*high;
  // A convolution with more strides than spatial dimensions is read as written; shape inference
  // rejects it.
  static constexpr bool kGrows = std::is_same_v<A, ConvolutionAttrs>;

  void Read(const MlirRowFacts& row, MlirAttrReader& in, A& attrs) const {
    const AttrValue* value = in.Take(row.name);
    if (value == nullptr) return;
    std::vector<Dims> lists;
    if (high != nullptr) lists = in.Of<std::vector<Dims>>(row.name, *value);
    if (high == nullptr)
      for (int64_t number : in.Of<Dims>(row.name, *value)) lists.push_back({number, 0});
    Window& dims = attrs.*window;
    if (!FitsWindow(in, row.name, lists.size(), kGrows, dims)) return;
    for (size_t i = 0; i < lists.size(); ++i) {
      if (lists[i].size() != 2) return in.Fail(row.name, "expected pairs of integers");
      dims[i].*low = static_cast<T>(lists[i][0]);
      if (high != nullptr) dims[i].*high = static_cast<T>(lists[i][1]);
    }
  }
  void Write(const MlirRowFacts& row, const A& attrs, MlirAttrWriter& out) const {
    DenseArrayAttr list{std::is_same_v<T, bool> ? "i1" : "i64", {}, {}};
    std::vector<Dims> pairs;
    for (const WindowDim& dim : attrs.*window) {
      list.ints.push_back(dim.*low);
      if (high != nullptr) pairs.push_back({dim.*low, dim.*high});
    }
    if (high == nullptr) return out.Put(row, {std::move(list)});
    if (!pairs.empty()) out.Put(row, EncodeAttr(pairs));
  }
};

// An irregular attribute: functions read and write it. `write` returns nullopt for the default.
template <typename A>
struct MlirSpecial {
  void (*read)(MlirAttrReader& in, A& attrs);
  std::optional<AttrValue> (*write)(Op op, const A& attrs);
  void Read(const MlirRowFacts&, MlirAttrReader& in, A& attrs) const { read(in, attrs); }
  void Write(const MlirRowFacts& row, const A& attrs, MlirAttrWriter& out) const {
    if (std::optional<AttrValue> value = write(out.op(), attrs)) out.Put(row, std::move(*value));
  }
};

// Completes the attributes from what the rows above have read.
template <typename A>
struct MlirStep {
  void (*step)(MlirAttrReader& in, A& attrs);
  void Read(const MlirRowFacts&, MlirAttrReader& in, A& attrs) const { step(in, attrs); }
  void Write(const MlirRowFacts&, const A&, MlirAttrWriter&) const {}
};

// Called functions: MlirBuilder reads them, MlirWriter writes them.
struct MlirSymbols {
  template <typename A>
  void Read(const MlirRowFacts& row, MlirAttrReader& in, A&) const {
    (void)in.Take(row.name);
  }
  template <typename A>
  void Write(const MlirRowFacts&, const A&, MlirAttrWriter&) const {}
};

// A record that is written even if it has no fields.
struct MlirEmptyRecord {
  template <typename A>
  void Read(const MlirRowFacts&, MlirAttrReader&, A&) const {}
  template <typename A>
  void Write(const MlirRowFacts& row, const A&, MlirAttrWriter& out) const {
    out.Open(row.record);
  }
};

// ---- the vocabulary of the table

namespace mlir_table {

template <typename Value>
constexpr MlirRow<Value> Row(std::string_view name, MlirPresence presence, Value value) {
  return {{.name = name, .presence = presence, .vhlo = name}, value};
}
template <typename F>
constexpr auto Required(std::string_view name, F field) {
  return Row(name, MlirPresence::kRequired, MlirField<F>{field});
}
template <typename F>
constexpr auto Written(std::string_view name, F field) {
  return Row(name, MlirPresence::kWritten, MlirField<F>{field});
}
template <typename F>
constexpr auto Optional(std::string_view name, F field) {
  return Row(name, MlirPresence::kOptional, MlirField<F>{field});
}
template <typename A, typename T>
constexpr auto Column(std::string_view name, Window A::*window, T WindowDim::*low,
                      T WindowDim::*high = nullptr) {
  return Row(name, MlirPresence::kWritten, MlirColumn<A, T>{window, low, high});
}
template <typename A>
constexpr auto Special(std::string_view name, void (*read)(MlirAttrReader&, A&),
                       std::optional<AttrValue> (*write)(Op, const A&)) {
  return Row(name, MlirPresence::kOptional, MlirSpecial<A>{read, write});
}
template <typename A>
constexpr auto Then(void (*step)(MlirAttrReader&, A&)) {
  return Row("", MlirPresence::kOptional, MlirStep<A>{step});
}
constexpr auto Symbols(std::string_view name) {
  return Row(name, MlirPresence::kOptional, MlirSymbols{});
}
constexpr auto Record(MlirRecordName record) {
  return Row("", MlirPresence::kWritten, MlirEmptyRecord{}).In(record);
}

}  // namespace mlir_table

}  // namespace tokamak
