#pragma once

// The parser of MLIR text: one pass over the characters that drives the importer directly. Every
// Parse function returns false after the first error, which is kept; errors are located at the
// current token.
//
//   mlir_text.cc          aliases, modules, functions
//   mlir_text_ops.cc      values, regions, ops in generic form
//   mlir_text_pretty.cc   ops in the form that StableHLO prints
//   mlir_text_forms.cc    ops whose printed form is like no other's
//   mlir_text_types.cc    types
//   mlir_text_attrs.cc    attributes
//   mlir_text_dialects.cc attributes of stablehlo and sdy
//   mlir_text_dense.cc    constants
//   mlir_text_loc.cc      locations

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/mlir_cursor.h"
#include "text/mlir_import.h"

namespace tokamak {

struct MlirPretty;

// The number of attributes nested in an attribute, itself included, and the nesting depth.
struct AttrSize {
  int64_t nodes = 1;
  int depth = 1;
};

// Names of values, innermost region last. A slot with several results names all of them.
class MlirScopes {
 public:
  struct Values {
    uint32_t first = 0, count = 0;  // in pool()
  };
  void Clear();
  void Push();
  void Pop();
  // Returns false if the name is taken.
  bool Define(std::string_view name, std::span<Instr* const> values);
  const Values* Find(std::string_view name) const;
  Instr* value(size_t i) const { return pool_[i]; }

 private:
  struct Slot {
    std::string_view name;
    uint32_t hash = 0;
    uint32_t life = 0;  // the scope's life at the definition; the slot is free if it differs
    Values values;
  };
  struct Scope {
    std::vector<Slot> slots;  // open addressing
    size_t used = 0;
    uint32_t life = 1;  // incremented for each region at this depth, so slots need no clearing
  };
  static uint32_t HashOf(std::string_view name);
  const Values* Find(std::string_view name, uint32_t hash) const;
  static const Slot* FindIn(const Scope& scope, std::string_view name, uint32_t hash);
  static Slot& FreeSlot(Scope& scope, uint32_t hash);
  static void Grow(Scope& scope);

  std::vector<Scope> scopes_;
  size_t depth_ = 0;
  std::vector<Instr*> pool_;
};

class MlirTextReader {
 public:
  MlirTextReader(std::string_view text, const std::string& file, int first_line);
  Result<std::unique_ptr<Module>> Read();

 private:
  struct Alias {
    MlirCursor::Mark mark;
    int state = 0;  // 0 not read, 1 being read, 2 read
    std::optional<AttrValue> attr;
    std::optional<Shape> type;
    std::optional<OriginId> origins;
    AttrSize size;  // of attr
  };
  using Attrs_ = std::vector<MlirAttr>;
  // The parsed text between the operands and the end of an op.
  struct OpText {
    const MlirOp* op = nullptr;
    TextPos pos;
    std::vector<Instr*> operands;
    std::vector<TextPos> operand_pos;
    std::vector<Shape> operand_types, results;
    std::vector<MlirAttr> attrs;
    std::vector<Computation*> regions;
    bool has_types = false;   // operand_types were written
    bool same_types = false;  // results[0] is the type of every operand
    void Clear();
  };
  struct ResultName {
    std::string_view name;
    uint32_t count = 1;
    TextPos pos;
  };

  // -- errors
  bool Fail(ErrorCode code, std::string message) {
    return FailAt(cursor_.Pos(), code, std::move(message));
  }
  bool FailAt(TextPos pos, ErrorCode code, std::string message);
  bool Expected(std::string_view what);  // "expected <what>, found <token>"
  bool Take(Status status);
  bool Expect(char c);
  bool Expect(std::string_view text);
  bool Enter();
  void Leave() { --depth_; }

  // -- files and functions
  bool FindAliases();
  bool FindResources(const char* begin);
  bool ParseTopLevel();
  bool ParseTopLevelOp(bool inside_module);
  bool ParseModule();
  bool ParseModuleBody();
  bool ParseModuleAttributes();
  bool ParseFunction();
  bool ParseFunctionArguments();
  bool ParseFunctionResults(std::vector<Shape>& results, std::vector<Attrs_>& attrs);
  bool ParseGenericTopLevel(bool inside_module);
  bool ParseGenericFunction(const MlirCursor::Mark& regions, const Attrs_& attrs, TextPos pos);
  bool ParseMesh();

  // -- ops
  bool ParseRegion(const std::vector<std::pair<std::string_view, Shape>>* arguments = nullptr);
  bool ParseRegionBody();
  bool ParseBlockLabel();
  bool ParseOps();
  bool ParseOp();
  bool ParseResultNames();
  bool ParseGenericOp(OpText& op);
  bool ParseRegionList(OpText& op);
  bool CheckAttrNames(const OpText& op);
  bool FinishOp(OpText& op);
  bool DefineResults(TextPos pos);
  bool ParseOperand(std::vector<Instr*>& operands, std::vector<TextPos>* positions);
  bool ParseOperandList(OpText& op, char close);
  bool CheckOperandTypes(OpText& op);
  const MlirOp* FindOp(std::string_view name, TextPos pos);

  // -- printed forms
  bool ParsePrettyOp(OpText& op, std::string_view name);
  bool ParseItems(OpText& op, const MlirPretty& form);
  bool ParseKeyword(OpText& op);
  bool ParseKeywordValue(OpText& op, std::string_view attr, std::string_view keyword);
  bool ParsePrettyTypes(OpText& op, const MlirPretty& form);
  bool ParseFunctionalTypes(OpText& op);
  bool ParseTypeListTo(std::vector<Shape>& types);  // "t, t" or "(t, t)" or "()"
  bool AssignTypes(OpText& op, const MlirPretty& form, bool has_arrow);
  bool ParseCallForm(OpText& op);
  bool ParseConstantForm(OpText& op);
  bool ParseCompareForm(OpText& op);
  bool ParseSliceForm(OpText& op);
  bool ParseTupleElementForm(OpText& op);
  bool ParseReduceForm(OpText& op);
  bool ParseReducer(OpText& op, size_t inputs);
  bool ParseWhileForm(OpText& op);
  bool ParseConvolutionForm(OpText& op);
  bool ParseConvWindow(OpText& op);
  bool ParseCompositeForm(OpText& op);
  bool ParseScanForm(OpText& op);
  bool ParseTopKForm(OpText& op);
  bool ParseShardingForm(OpText& op);
  bool ParseManualForm(OpText& op);
  bool ParseNamedForm(OpText& op);
  bool ParsePair(OpText& op, std::string_view lhs, std::string_view rhs);

  // -- types
  bool ParseType(Shape& shape);
  bool ParseTypeSlow(Shape& shape);
  bool ParseTensor(Shape& shape);
  bool ParseTensorBody(Shape& shape, bool is_buffer);
  bool ParseElementType(ElementType& type, std::optional<QuantType>& quant);
  bool ParseQuant(ElementType& type, QuantType& quant);
  bool ParseEncoding(Dims& bounds, size_t rank);
  bool ParseDialectType(Shape& shape);

  // -- attributes
  bool ParseAttr(AttrValue& value);
  bool CheckAlias(const AttrSize& size, TextPos pos);
  bool ParseAttrDict(Attrs_& attrs);  // { a = 1, b }
  bool ParseAttrDictBody(Attrs_& attrs, char close);
  bool ParseOptionalAttrDict(Attrs_& attrs);
  bool ParseDictValue(AttrValue& value);
  bool ParseList(AttrValue& value);
  bool ParseString(std::string& text);
  bool ParseSymbol(std::string& name);
  bool ParseNumber(AttrValue& value);
  bool ParseNumberType(std::string& type);
  bool ParseDenseArray(AttrValue& value);
  bool ParseHashAttr(AttrValue& value);
  bool ParseTypeAttr(AttrValue& value);
  bool ParseInt(int64_t& value);
  bool ParseIntList(Dims& values);       // [1, 2]
  bool ParseIntLists(AttrValue& value);  // [[1, 2], [3]]
  bool SkipBalanced(char open, char close, std::string_view& text);

  // -- attributes of dialects
  bool ParseDialectAttr(std::string_view kind, AttrValue& value);
  bool ParseRecord(std::string_view kind, AttrValue& value);  // <a = 1, b = [2]>
  bool ParseRecordField(RecordAttr& record);
  bool ParseRecordValue(AttrValue& value);
  bool ParseConvDims(RecordAttr& record);  // [b, 0, f]x[0, i, o]->[b, 0, f]
  bool ParseConvSide(RecordAttr& record, int side);
  bool ParseSdyAttr(std::string_view kind, AttrValue& value);
  bool ParseSharding(AttrValue& value);      // <@mesh, [{"x"}]>
  bool ParseShardingList(AttrValue& value);  // <[<@mesh, ...>, ...]> or [<...>]
  bool ParseShardingMesh(Sharding& sharding);
  bool ParseDimSharding(DimSharding& dim);
  bool ParseAxisList(std::vector<AxisRef>& axes, char close);
  bool ParseAxis(AxisRef& axis);
  bool ParseMeshBody(Mesh& mesh);  // <["x"=2], device_ids=[0]>
  bool ParseManualAxes(AttrValue& value);
  bool ParseShardingRule(AttrValue& value);
  bool ParseMappings(std::vector<std::vector<Dims>>& mappings);
  bool ParseFactors(Dims& factors);

  // -- constants
  bool ParseDense(Literal& literal);  // after "dense"
  bool ParseElements(const Shape& shape, std::string_view text, TextPos pos, Literal& literal);
  bool ParseDenseResource(Literal& literal);

  // -- locations
  bool ParseOptionalLoc(OriginId& origins);  // loc(...)
  bool ParseLoc(OriginId& origins);          // the text inside loc(...)
  bool ParseFrame(FrameId caller, FrameId& frame, std::string_view function);
  bool ParseFrameAlias(std::string_view name, FrameId caller, FrameId& frame,
                       std::string_view function);
  bool ParseFileRange(Frame& frame);
  bool SkipLoc();

  std::string_view text_;
  std::string file_;
  uint32_t first_line_;
  MlirCursor cursor_;
  MlirImporter importer_;
  std::optional<Error> error_;
  int depth_ = 0;

  MlirScopes scopes_;
  std::unordered_map<std::string_view, Shape> types_;  // by their text
  // The last type and op of each slot: most lookups hit here with one comparison.
  struct RecentType {
    std::string_view text;
    const Shape* shape = nullptr;  // in types_
  };
  std::array<RecentType, 128> recent_types_ = {};
  struct RecentOp {
    std::string_view name;
    const MlirOp* op = nullptr;
  };
  std::array<RecentOp, 128> recent_ops_ = {};
  std::deque<std::string> escaped_names_;  // of attributes, where the text holds escapes
  std::unordered_map<std::string_view, Alias> aliases_;  // with '#' or '!'
  int frames_entered_ = 0;                               // aliases of one location's frames
  int64_t alias_nodes_ = 0;                              // attributes copied out of aliases
  std::unordered_map<std::string, std::string_view> resources_;
  std::map<std::pair<std::string_view, FrameId>, FrameId> frames_;
  // One per nesting level, reused: an op inside a region has its own.
  std::vector<std::unique_ptr<OpText>> op_pool_;
  size_t op_depth_ = 0;
  std::vector<ResultName> result_names_;
  std::vector<Instr*> values_;
};

}  // namespace tokamak
