// Builds a Module from MLIR bytecode. BytecodeWalker reports the ops of the file; each is
// translated by the importer that the text reader uses too (text/mlir_import.h), so both readers
// give equal modules.
//
// Work is cached: an op's name is looked up once per file, a property list is converted once per
// op, types and locations are decoded once each. A million instructions take about 0.7 s and 320 MB
// (measured by bench/run_foundation.py).
#include <deque>
#include <optional>

#include "ir/ir.h"
#include "text/bytecode_ops.h"
#include "text/bytecode_tables.h"
#include "text/bytecode_walker.h"
#include "text/mlir_import.h"
#include "text/mlir_sdy.h"
#include "text/read.h"

namespace tokamak {
namespace {

class BytecodeImporter : public BytecodeWalker {
 public:
  explicit BytecodeImporter(const BytecodeFile& file)
      : BytecodeWalker(file),
        tables_(file),
        importer_(file.file),
        first_meaning_(file.properties.size(), kNone) {}

  Result<std::unique_ptr<Module>> Read() {
    for (const BytecodeFile::OpName& name : file_.ops) kinds_.push_back(KindOf(name));
    TOK_RETURN_IF_ERROR(Walk());
    return importer_.Finish();
  }

 private:
  enum class Role : uint8_t { kUnknown, kModule, kMesh, kFunction, kCast, kOp };
  struct OpKind {
    Role role = Role::kUnknown;
    bool cached = false;  // the attributes do not depend on the op's position
    const BytecodeOpRow* row = nullptr;
    const MlirOp* op = nullptr;
    MlirAttrCache cache;  // for ops without properties
  };
  // The converted properties for one op. Ops of different names may share properties.
  struct Meaning {
    uint32_t name = 0;
    uint32_t next = kNone;
    std::vector<MlirAttr> attrs;
    MlirAttrCache cache;
  };
  // A region being read, and where its values are stored.
  struct Scope {
    size_t base = 0;  // value 0 of its numbering
    size_t next = 0;  // index of the next value
    size_t end = 0;   // of the values it defines itself
    size_t outer_size = 0;
    bool of_function = false, of_module = false;
  };
  // An op with regions, until all of them are read.
  struct Open {
    std::vector<Instr*> operands;
    std::vector<Computation*> regions;
  };
  struct Function {
    std::vector<Shape> results;
    std::vector<std::vector<MlirAttr>> argument_attrs, result_attrs;
    size_t arguments = 0;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  Status BeginOp(const BytecodeOp& op) override;
  Status EndOp(const BytecodeOp& op) override;
  Status BeginRegion(const BytecodeOp& op, uint64_t values, bool isolated, size_t offset) override;
  Status AddArgument(BytecodeRef type, std::optional<BytecodeRef> location) override;
  Status EndRegion(size_t offset) override;

  OpKind KindOf(const BytecodeFile::OpName& name) const;
  Status BeginModule(const BytecodeOp& op);
  Status AddMesh(const BytecodeOp& op);
  Status BeginFunction(const BytecodeOp& op);
  Status EndFunction(const BytecodeOp& op);
  Status AddPlainOp(const BytecodeOp& op, std::span<Instr*> operands,
                    std::span<Computation* const> regions);
  Status FindOperands(const BytecodeOp& op, std::vector<Instr*>& operands);
  Status Define(std::span<Instr* const> values, const BytecodeOp& op);
  Result<Meaning*> MeaningOf(const BytecodeOp& op);
  Result<AttrValue> PropertyValue(const OpKind& kind, std::string_view name, BytecodeRef ref);
  Result<std::vector<MlirAttr>> Attributes(BytecodeRef ref);
  Result<std::vector<std::vector<MlirAttr>>> AttributeLists(BytecodeRef ref);

  std::string NameOf(const BytecodeOp& op) const { return file_.NameOf(file_.ops[op.name]); }
  static TextPos PosOf(size_t offset) { return {0, static_cast<uint32_t>(offset)}; }

  BytecodeTables tables_;
  MlirImporter importer_;
  std::vector<OpKind> kinds_;
  std::vector<uint32_t> first_meaning_;  // by number of the properties
  std::deque<Meaning> meanings_;
  std::vector<Instr*> values_;
  std::vector<Scope> scopes_;
  std::vector<Open> open_;
  Function function_;
  // Reused for every op.
  std::vector<Instr*> operands_, results_;
  std::vector<Shape> shapes_;
};

BytecodeImporter::OpKind BytecodeImporter::KindOf(const BytecodeFile::OpName& name) const {
  OpKind kind;
  kind.row = FindBytecodeOp(file_.dialects[name.dialect], name.name);
  if (kind.row == nullptr) return kind;
  const std::string_view reads_as = kind.row->reads_as;
  kind.op = FindMlirOp(reads_as);
  if (reads_as == "builtin.module") {
    kind.role = Role::kModule;
  } else if (reads_as == "sdy.mesh") {
    kind.role = Role::kMesh;
  } else if (reads_as == "func.func") {
    kind.role = Role::kFunction;
  } else if (reads_as == "builtin.unrealized_conversion_cast") {
    kind.role = Role::kCast;
  } else if (kind.op != nullptr) {
    kind.role = Role::kOp;
    // Calls read more than their properties, so they are converted every time.
    auto op = OpFromMlirName(reads_as);
    kind.cached = op && *op != Op::kComposite && *op != Op::kCustomCall && *op != Op::kCall;
  }
  return kind;
}

// ---- ops ----------------------------------------------------------------------

Status BytecodeImporter::BeginOp(const BytecodeOp& op) {
  const OpKind& kind = kinds_[op.name];
  if (kind.role == Role::kUnknown) return UnknownOp(file_, file_.ops[op.name], op.offset);
  const bool at_top = scopes_.empty();
  const bool in_module = !at_top && scopes_.back().of_module;
  const bool fits = at_top      ? kind.role == Role::kModule
                    : in_module ? kind.role == Role::kMesh || kind.role == Role::kFunction
                                : kind.role == Role::kOp || kind.role == Role::kCast;
  if (!fits) {
    return file_.ErrorAt(
        ErrorCode::kBytecodeRegion,
        NameOf(op) + ": stands " + (at_top ? "where the module does" : "where it cannot"),
        op.offset);
  }
  switch (kind.role) {
    case Role::kModule:
      return BeginModule(op);
    case Role::kFunction:
      return BeginFunction(op);
    case Role::kMesh:
      return AddMesh(op);
    default:
      break;
  }
  if (op.regions == 0) return Ok();  // EndOp follows immediately
  open_.emplace_back();
  TOK_RETURN_IF_ERROR(FindOperands(op, open_.back().operands));
  importer_.Localize(open_.back().operands);
  importer_.BeginRegions(*kind.op);
  return Ok();
}

Status BytecodeImporter::EndOp(const BytecodeOp& op) {
  const OpKind& kind = kinds_[op.name];
  switch (kind.role) {
    case Role::kFunction:
      return EndFunction(op);
    case Role::kCast:
      if (op.operands.size() != op.results.size() || op.regions != 0) {
        return file_.ErrorAt(ErrorCode::kBytecodeValue,
                             NameOf(op) + ": takes " + std::to_string(op.operands.size()) +
                                 " values and gives " + std::to_string(op.results.size()),
                             op.offset);
      }
      TOK_RETURN_IF_ERROR(FindOperands(op, operands_));
      return Define(operands_, op);
    case Role::kOp:
      break;
    default:
      return Ok();
  }
  if (op.regions == 0) {
    TOK_RETURN_IF_ERROR(FindOperands(op, operands_));
    return AddPlainOp(op, operands_, {});
  }
  importer_.EndRegions();
  Open open = std::move(open_.back());
  open_.pop_back();
  return AddPlainOp(op, open.operands, open.regions);
}

Status BytecodeImporter::AddPlainOp(const BytecodeOp& op, std::span<Instr*> operands,
                                    std::span<Computation* const> regions) {
  OpKind& kind = kinds_[op.name];
  shapes_.clear();
  for (BytecodeRef type : op.results) {
    const Shape* shape = tables_.KnownValueType(type.index);
    if (shape == nullptr) {
      TOK_TRY(shape, tables_.ValueType(type));
    }
    shapes_.push_back(*shape);
  }
  MlirOpInput input;
  input.op = kind.op;
  input.operands = operands;
  input.results = shapes_;
  input.regions = regions;
  input.pos = PosOf(op.offset);
  TOK_TRY(input.origins, tables_.Location(op.location, importer_.module().origins()));
  Meaning* meaning = nullptr;
  MlirAttrCache* cache = &kind.cache;
  if (op.properties || !kind.row->properties.empty()) {
    TOK_TRY(meaning, MeaningOf(op));
    input.attrs = meaning->attrs;
    cache = &meaning->cache;
  }
  std::vector<MlirAttr> all;
  if (op.attributes) {
    TOK_TRY(all, Attributes(*op.attributes));
    all.insert(all.end(), input.attrs.begin(), input.attrs.end());
    input.attrs = all;
  }
  if (kind.cached) input.cache = cache;
  results_.clear();
  TOK_RETURN_IF_ERROR(importer_.AddOp(input, results_));
  if (meaning != nullptr && input.cache != nullptr && cache->filled) {
    meaning->attrs.clear();
    meaning->attrs.shrink_to_fit();
  }
  return Define(results_, op);
}

Status BytecodeImporter::FindOperands(const BytecodeOp& op, std::vector<Instr*>& operands) {
  const Scope& scope = scopes_.back();
  operands.clear();
  operands.reserve(op.operands.size());
  for (BytecodeRef ref : op.operands) {
    const bool known = ref.index < values_.size() - scope.base;
    Instr* value = known ? values_[scope.base + ref.index] : nullptr;
    if (value == nullptr) {
      return file_.ErrorAt(
          ErrorCode::kBytecodeValue,
          NameOf(op) + ": value " + std::to_string(ref.index) + " is not defined before it is used",
          ref.from);
    }
    operands.push_back(value);
  }
  return Ok();
}

// Appends the results of an op to the values of its region.
Status BytecodeImporter::Define(std::span<Instr* const> values, const BytecodeOp& op) {
  Scope& scope = scopes_.back();
  if (values.size() != op.results.size() || values.size() > scope.end - scope.next) {
    return file_.ErrorAt(ErrorCode::kBytecodeValue,
                         NameOf(op) + ": its " + std::to_string(op.results.size()) +
                             " results exceed the number of values that its region declares",
                         op.offset);
  }
  for (Instr* value : values) values_[scope.next++] = value;
  return Ok();
}

// ---- attributes ---------------------------------------------------------------

Result<BytecodeImporter::Meaning*> BytecodeImporter::MeaningOf(const BytecodeOp& op) {
  const uint64_t number = op.properties ? op.properties->index : kNone;
  if (number < first_meaning_.size()) {
    for (uint32_t i = first_meaning_[number]; i != kNone; i = meanings_[i].next)
      if (meanings_[i].name == op.name) return &meanings_[i];
  }
  const OpKind& kind = kinds_[op.name];
  TOK_TRY(std::vector<BytecodeRef> refs,
          ReadProperties(file_, NameOf(op), *kind.row, op.properties, op.offset));
  Meaning meaning;
  meaning.name = op.name;
  for (size_t i = 0; i < refs.size(); ++i) {
    if (refs[i].index == kAbsent) continue;
    const std::string_view name = kind.row->properties[i].name;
    TOK_TRY(AttrValue value, PropertyValue(kind, name, refs[i]));
    meaning.attrs.push_back({name, std::move(value)});
  }
  if (number < first_meaning_.size()) {
    meaning.next = first_meaning_[number];
    first_meaning_[number] = static_cast<uint32_t>(meanings_.size());
  }
  meanings_.push_back(std::move(meaning));
  return &meanings_.back();
}

Result<AttrValue> BytecodeImporter::PropertyValue(const OpKind&, std::string_view name,
                                                  BytecodeRef ref) {
  TOK_TRY(const BytecodeAttr* attr, tables_.Attribute(ref));
  TOK_RETURN_IF_ERROR(tables_.Charge(attr->weight, ref.from));
  // The types of a dot algorithm are identified by name: not all are element types.
  if (attr->type != nullptr && !attr->type->name.empty()) return AttrValue{attr->type->name};
  const auto* record = attr->value.As<RecordAttr>();
  if (name != "replica_groups" || record == nullptr) return attr->value;
  // A mesh written inside the attribute gets a row of the mesh table.
  const AttrValue* mesh = Find(record->fields, "mesh_name");
  std::optional<Mesh> inline_mesh;
  if (mesh != nullptr) inline_mesh = MeshFromAttr(*mesh);
  if (!inline_mesh) return attr->value;
  RecordAttr named = *record;
  Set(named.fields, "mesh_name", {SymbolAttr{importer_.InternMesh(std::move(*inline_mesh))}});
  return AttrValue{std::move(named)};
}

Result<std::vector<MlirAttr>> BytecodeImporter::Attributes(BytecodeRef ref) {
  TOK_TRY(const BytecodeAttr* attr, tables_.Attribute(ref));
  TOK_RETURN_IF_ERROR(tables_.Charge(attr->weight, ref.from));
  const auto* dict = attr->value.As<AttrDict>();
  if (dict == nullptr)
    return file_.ErrorAt(ErrorCode::kBytecodeKind, "bytecode: a dictionary is expected", ref.from);
  std::vector<MlirAttr> attrs;
  attrs.reserve(dict->size());
  for (const AttrEntry& entry : *dict) attrs.push_back({entry.name, entry.value});
  return attrs;
}

// A list of dictionaries: one per argument or result.
Result<std::vector<std::vector<MlirAttr>>> BytecodeImporter::AttributeLists(BytecodeRef ref) {
  TOK_TRY(const BytecodeAttr* attr, tables_.Attribute(ref));
  TOK_RETURN_IF_ERROR(tables_.Charge(attr->weight, ref.from));
  const auto* list = attr->value.As<AttrList>();
  std::vector<std::vector<MlirAttr>> lists;
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const auto* dict = (*list)[i].As<AttrDict>();
    if (dict == nullptr) {
      list = nullptr;
      break;
    }
    lists.emplace_back();
    for (const AttrEntry& entry : *dict) lists.back().push_back({entry.name, entry.value});
  }
  if (list != nullptr) return lists;
  return file_.ErrorAt(ErrorCode::kBytecodeKind, "bytecode: a list of dictionaries is expected",
                       ref.from);
}

// ---- module and functions -----------------------------------------------------

Status BytecodeImporter::BeginModule(const BytecodeOp& op) {
  TOK_TRY(std::vector<BytecodeRef> refs,
          ReadProperties(file_, NameOf(op), *kinds_[op.name].row, op.properties, op.offset));
  if (refs[0].index != kAbsent) {
    TOK_TRY(std::string_view name, tables_.String(refs[0]));
    importer_.module().set_name(std::string(name));
  }
  if (op.regions != 1) {
    return file_.ErrorAt(ErrorCode::kBytecodeRegion,
                         "builtin.module: has " + std::to_string(op.regions) + " regions",
                         op.offset);
  }
  if (!op.attributes) return Ok();
  TOK_TRY(std::vector<MlirAttr> attrs, Attributes(*op.attributes));
  for (MlirAttr& attr : attrs) {
    TOK_RETURN_IF_ERROR(
        importer_.AddModuleAttribute(attr.name, std::move(attr.value), PosOf(op.offset)));
  }
  return Ok();
}

Status BytecodeImporter::AddMesh(const BytecodeOp& op) {
  TOK_TRY(std::vector<BytecodeRef> refs,
          ReadProperties(file_, NameOf(op), *kinds_[op.name].row, op.properties, op.offset));
  TOK_TRY(const BytecodeAttr* attr, tables_.Attribute(refs[0]));
  std::optional<Mesh> mesh = MeshFromAttr(attr->value);
  if (!mesh || op.regions != 0 || !op.results.empty())
    return file_.ErrorAt(ErrorCode::kBytecodeKind, "sdy.mesh: a mesh is expected", refs[0].from);
  TOK_TRY(std::string_view name, tables_.String(refs[1]));
  mesh->name = std::string(name);
  return importer_.AddMesh(std::move(*mesh), PosOf(op.offset));
}

// Properties of func_v1, in their encoded order.
enum FunctionProperty {
  kPropertyArgAttrs,
  kPropertyFunctionType,
  kPropertyResAttrs,
  kPropertySymName,
  kPropertySymVisibility
};

Status BytecodeImporter::BeginFunction(const BytecodeOp& op) {
  TOK_TRY(std::vector<BytecodeRef> refs,
          ReadProperties(file_, NameOf(op), *kinds_[op.name].row, op.properties, op.offset));
  TOK_TRY(const BytecodeAttr* type, tables_.Attribute(refs[kPropertyFunctionType]));
  if (type->type == nullptr || type->type->kind != BytecodeType::Kind::kFunction) {
    return file_.ErrorAt(ErrorCode::kBytecodeKind, NameOf(op) + ": a function type is expected",
                         refs[kPropertyFunctionType].from);
  }
  if (op.regions != 1) {
    return file_.ErrorAt(ErrorCode::kBytecodeRegion,
                         NameOf(op) + ": has " + std::to_string(op.regions) + " regions",
                         op.offset);
  }
  function_ = {};
  function_.results = type->type->results;
  function_.arguments = type->type->inputs.size();
  TOK_TRY(function_.argument_attrs, AttributeLists(refs[kPropertyArgAttrs]));
  TOK_TRY(function_.result_attrs, AttributeLists(refs[kPropertyResAttrs]));
  if (function_.result_attrs.size() > function_.results.size()) {
    return file_.ErrorAt(ErrorCode::kBytecodeKind,
                         NameOf(op) + ": attributes of " +
                             std::to_string(function_.result_attrs.size()) + " results, it has " +
                             std::to_string(function_.results.size()),
                         refs[kPropertyResAttrs].from);
  }
  MlirFunction function;
  TOK_TRY(function.name, tables_.String(refs[kPropertySymName]));
  TOK_TRY(std::string_view visibility, tables_.String(refs[kPropertySymVisibility]));
  function.is_public = visibility.empty() || visibility == "public";
  function.pos = PosOf(op.offset);
  TOK_TRY(function.origins, tables_.Location(op.location, importer_.module().origins()));
  return importer_.BeginFunction(function);
}

Status BytecodeImporter::EndFunction(const BytecodeOp& op) {
  std::vector<MlirAttr> attrs;
  if (op.attributes) {
    TOK_TRY(attrs, Attributes(*op.attributes));
  }
  return importer_.EndFunction(function_.results, function_.result_attrs, attrs, PosOf(op.offset));
}

// ---- regions ------------------------------------------------------------------

Status BytecodeImporter::BeginRegion(const BytecodeOp& op, uint64_t values, bool isolated,
                                     size_t offset) {
  const Role role = kinds_[op.name].role;
  Scope scope;
  scope.of_module = role == Role::kModule;
  scope.of_function = role == Role::kFunction;
  scope.outer_size = values_.size();
  // Functions never see outer values, whatever the isolated flag says.
  const bool fresh = isolated || scopes_.empty();
  scope.base = fresh ? values_.size() : scopes_.back().base;
  scope.next = values_.size();
  values_.resize(values_.size() + values);
  scope.end = values_.size();
  scopes_.push_back(scope);
  if (scope.of_module || scope.of_function) return Ok();
  return importer_.BeginRegion(PosOf(offset));
}

Status BytecodeImporter::AddArgument(BytecodeRef type, std::optional<BytecodeRef> location) {
  Scope& scope = scopes_.back();
  if (scope.of_module || scope.next == scope.end) {
    return file_.ErrorAt(ErrorCode::kBytecodeRegion,
                         "bytecode: a block has more arguments than its region defines values",
                         type.from);
  }
  TOK_TRY(const Shape* shape, tables_.ValueType(type));
  OriginId origins = OriginId::kNone;
  if (location) {
    TOK_TRY(origins, tables_.Location(*location, importer_.module().origins()));
  }
  const size_t number = scope.next - scope.outer_size;
  std::span<const MlirAttr> attrs;
  if (scope.of_function && number < function_.argument_attrs.size())
    attrs = function_.argument_attrs[number];
  TOK_TRY(Instr * argument, importer_.AddArgument(*shape, {}, attrs, PosOf(type.from), origins));
  values_[scope.next++] = argument;
  return Ok();
}

Status BytecodeImporter::EndRegion(size_t offset) {
  const Scope scope = scopes_.back();
  scopes_.pop_back();
  values_.resize(scope.outer_size);
  if (scope.of_module) return Ok();
  if (scope.of_function) {
    const size_t arguments = importer_.current()->parameters().size();
    if (arguments == function_.arguments) return Ok();
    return file_.ErrorAt(ErrorCode::kBytecodeRegion,
                         "vhlo.func_v1: takes " + std::to_string(function_.arguments) +
                             " arguments by its type, its body " + std::to_string(arguments),
                         offset);
  }
  TOK_TRY(Computation * computation, importer_.EndRegion(PosOf(offset)));
  open_.back().regions.push_back(computation);
  return Ok();
}

}  // namespace

Result<std::unique_ptr<Module>> ReadMlirBytecode(const Bytes& bytes, const std::string& file) {
  TOK_TRY(BytecodeFile opened, OpenBytecode(bytes, file));
  return BytecodeImporter(opened).Read();
}

}  // namespace tokamak
