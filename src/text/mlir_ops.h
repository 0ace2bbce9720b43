#pragma once

// The table of MLIR ops behind text/mlir_import.h, and the reader of their attributes. Only the
// importer's own files include this.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/mlir_attribute_values.h"
#include "text/mlir_attributes.h"
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

struct MlirOp {
  std::string name;
  Op op{};
  MlirAction action = MlirAction::kPlain;
  MlirConverter convert = nullptr;
  const MlirPretty* form = nullptr;  // printed form in MLIR text
  std::vector<MlirKeyword> keywords = {};
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

  // Returns null if absent. The attribute then counts as used.
  const AttrValue* Take(std::string_view name);
  // Field `field` of the record `record`, or the attribute `field` itself.
  const AttrValue* TakeField(std::string_view record, std::string_view field);

  int64_t Int(std::string_view name, int64_t fallback);
  std::string String(std::string_view name);

  // The value as a T, or T{} after an error.
  template <typename T>
  T Of(std::string_view name, const AttrValue& value) {
    T out{};
    std::string expected = DecodeAttr(value, out);
    if (expected.empty()) return out;
    Fail(name, "expected " + expected);
    return T{};
  }

  // "stablehlo.sort: attribute dimension: <message>" at the op.
  void Fail(std::string_view attribute, std::string message);
  void Missing(std::string_view attribute);
  bool failed() const { return error_.has_value(); }
  Error TakeError() { return std::move(*error_); }

  uint64_t used() const { return used_; }
  bool used_shapes() const { return used_shapes_; }
  std::span<const MlirAttr> attrs() const { return attrs_; }

 private:
  const MlirImporter& importer_;
  const MlirOpInput& input_;
  Op op_;
  std::span<const MlirAttr> attrs_;
  uint64_t used_ = 0;
  bool used_shapes_ = false;
  std::optional<Error> error_;
};

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
