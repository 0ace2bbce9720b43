#pragma once

// The table of MLIR ops behind text/mlir_import.h, and the reader of their attributes. Only the
// importer's own files include this.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/mlir_import.h"

namespace tokamak {

// How an op becomes instructions. kPlain: one instruction with the attributes of its row; every
// other action has a function in mlir_build.cc.
enum class MlirAction : uint8_t {
  kPlain,
  kReturn,
  kCall,
  kComposite,
  kCustomCall,
  kIf,
  kCase,
  kWhile,
  kDot,
  kBroadcast,
  kChloBroadcast,
  kConstantLike,
  kCast,
  kTuple,
  kCrossReplicaSum,
  kRunParallel,
  kNamedComputation,
  kMesh,
};

struct MlirPretty;
class MlirAttrReader;
using MlirConverter = Attrs (*)(MlirAttrReader& in);

struct MlirOp {
  std::string name;
  Op op{};
  MlirAction action = MlirAction::kPlain;
  MlirConverter convert = nullptr;
  const MlirPretty* form = nullptr;  // printed form in MLIR text
};

// Reads the attributes of one op by name. The first error is kept and every later query returns a
// default, so converters need not check after each query.
class MlirAttrReader {
 public:
  MlirAttrReader(const MlirImporter& importer, const MlirOpInput& input)
      : importer_(importer), input_(input), op_(input.op->op), attrs_(input.attrs) {}

  Op op() const { return op_; }
  std::string_view name() const { return input_.op->name; }
  // A query for an operand shape makes the result depend on the operands.
  const Shape& OperandShape(size_t i);
  const Shape& ResultShape(size_t i);
  size_t operand_count() const { return input_.operands.size(); }
  size_t result_count() const { return input_.results.size(); }

  // Returns null if absent. The attribute then counts as used.
  const AttrValue* Take(std::string_view name);
  // Field `field` of the record `record`, or the attribute `field` itself.
  const AttrValue* TakeField(std::string_view record, std::string_view field);

  int64_t Int(std::string_view name, int64_t fallback);
  int64_t RequiredInt(std::string_view name);
  bool Bool(std::string_view name, bool fallback = false);
  double Double(std::string_view name, double fallback);
  std::string String(std::string_view name);
  Dims DimList(std::string_view name);
  Dims RequiredDims(std::string_view name);
  std::vector<Dims> DimLists(std::string_view name);
  // The keyword of an enum, "" if absent.
  std::string Word(std::string_view name);
  template <typename E>
  E Enum(std::string_view name, E fallback, int first_number = 0) {
    const AttrValue* value = Take(name);
    return value == nullptr ? fallback : EnumOf<E>(name, *value, fallback, first_number);
  }
  template <typename E>
  E EnumOf(std::string_view name, const AttrValue& value, E fallback, int first_number = 0);

  int64_t IntOf(std::string_view name, const AttrValue& value);
  Dims DimsOf(std::string_view name, const AttrValue& value);
  std::vector<Dims> DimListsOf(std::string_view name, const AttrValue& value);
  Sharding ShardingOf(std::string_view name, const AttrValue& value);

  // "stablehlo.sort: attribute dimension: <message>" at the op.
  void Fail(std::string_view attribute, std::string message);
  void Missing(std::string_view attribute);
  bool failed() const { return error_.has_value(); }
  Error TakeError() { return std::move(*error_); }

  uint64_t used() const { return used_; }
  bool used_shapes() const { return used_shapes_; }
  std::span<const MlirAttr> attrs() const { return attrs_; }
  const MlirOpInput& input() const { return input_; }
  const MlirImporter& importer() const { return importer_; }

 private:
  const MlirImporter& importer_;
  const MlirOpInput& input_;
  Op op_;
  std::span<const MlirAttr> attrs_;
  uint64_t used_ = 0;
  bool used_shapes_ = false;
  std::optional<Error> error_;
};

// Whether `word` equals `name`, ignoring case.
bool SameWord(std::string_view word, std::string_view name);

template <typename E>
E MlirAttrReader::EnumOf(std::string_view name, const AttrValue& value, E fallback,
                         int first_number) {
  constexpr auto& names = EnumText<E>::names;
  if (const auto* number = value.As<IntAttr>()) {
    int64_t index = number->value - first_number;
    if (index >= 0 && index < static_cast<int64_t>(names.size())) return static_cast<E>(index);
  } else {
    const auto* word = value.As<EnumAttr>();
    const auto* text = value.As<std::string>();
    if (word != nullptr || text != nullptr) {
      std::string_view spelled = word != nullptr ? word->value : *text;
      for (size_t i = 0; i < names.size(); ++i)
        if (SameWord(spelled, names[i])) return static_cast<E>(i);
      Fail(name, "unknown word \"" + std::string(spelled) + "\"");
      return fallback;
    }
  }
  Fail(name, "expected a word");
  return fallback;
}

// The converter of an attribute struct; mlir_attrs*.cc define one for each.
template <typename A>
Attrs ReadMlirAttrs(MlirAttrReader& in);

// Attributes of "tokamak.<op>": every field of the struct under its own name.
Attrs ReadPlainAttrs(MlirAttrReader& in);

// Adds one op: see MlirImporter::AddOp. One object per op.
class MlirBuilder {
 public:
  MlirBuilder(MlirImporter& importer, const MlirOpInput& input, std::vector<Instr*>& values)
      : importer_(importer), input_(input), values_(values), in_(importer, input) {}
  Status Run();

 private:
  Status Plain();
  Status CallNamed(const AttrValue& names, Attrs attrs);
  Status Call();
  Status Composite();
  Status CustomCall();
  Status Conditional(bool is_if);
  Status While();
  Status Dot();
  Status Broadcast();
  Status ChloBroadcast();
  Status ConstantLike();
  Status Cast();
  Status Tuple();
  Status CrossReplicaSum();
  Status RunParallel();
  Status NamedComputation();
  Status MeshOp();
  Status CheckCall(CheckKind kind);
  Status ForeignOp(std::string_view op_name);

  Result<Attrs> Convert();
  // Appends an instruction with the op's position and origins.
  Instr* Append(Op op, Shape shape, std::vector<Instr*> operands, Attrs attrs = {});
  // Like Append, with the shape of the written results, the regions as called computations, and one
  // value per result.
  Status Finish(Op op, std::vector<Instr*> operands, Attrs attrs, size_t captures = 0);
  Status Finish(Instr* instr, size_t results);
  Shape ResultShape() const;
  Error OpError(ErrorCode code, std::string message) const;

  MlirImporter& importer_;
  const MlirOpInput& input_;
  std::vector<Instr*>& values_;
  MlirAttrReader in_;
  std::vector<Instr*> operands_;
};

}  // namespace tokamak
