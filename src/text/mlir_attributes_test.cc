#include "text/mlir_attributes.h"

#include <gtest/gtest.h>

#include "ir/compare.h"
#include "ir/visit_attrs.h"
#include "text/mlir_attribute_table.h"
#include "text/read.h"
#include "text/write.h"

// Every row of mlir_attributes.def: an instruction whose attribute has a value other than the
// default is written and read again, as MLIR text, as HLO text, and from the separate attributes
// that bytecode has. A row that is not read or not written fails.

namespace tokamak {
namespace {

// ---- a value that is not the default, for each type of a field

void Change(const MlirRowFacts&, bool& value) {
  value = !value;
}
void Change(const MlirRowFacts&, int64_t& value) {
  value += 1;
}
void Change(const MlirRowFacts&, double& value) {
  value = 0.5;
}
void Change(const MlirRowFacts& row, std::string& value) {
  value = row.type == "type" ? "bf16" : "text";
}
void Change(const MlirRowFacts& row, Dims& value) {
  value = row.type.empty() ? Dims{1, 0} : Dims{1};
}
void Change(const MlirRowFacts&, std::vector<Dims>& value) {
  value = {{0, 1}, {1, 0}};
}
Shape Square() {
  return Shape::Array(ElementType::kF32, {2, 2});
}
void Change(const MlirRowFacts&, Literal& value) {
  value = Literal::Splat(Square(), Literal::Scalar(ElementType::kF32, 2).data());
}
void Change(const MlirRowFacts&, AttrDict& value) {
  Set(value, "scale", {IntAttr{.value = 3}});
}
void Change(const MlirRowFacts&, Sharding& value) {
  value.kind = ShardingKind::kMesh;
  value.mesh = "mesh";
  value.dims.resize(2);
}
void Change(const MlirRowFacts& row, std::vector<Sharding>& value) {
  Change(row, value.emplace_back());
}
void Change(const MlirRowFacts&, std::vector<std::string>& value) {
  value = {"x"};
}
void Change(const MlirRowFacts&, std::vector<Precision>& value) {
  value = {Precision::kHigh, Precision::kHighest};
}
void Change(const MlirRowFacts&, std::vector<OutputAlias>& value) {
  value = {{.output = {0}, .operand = 1, .operand_index = {2}}};
}
void Change(const MlirRowFacts&, AccuracyAttrs& value) {
  value = {AccuracyMode::kTolerance, 0.5, 0.25, 3};
}
template <typename E>
requires std::is_enum_v<E>
void Change(const MlirRowFacts&, E& value) {
  value = static_cast<E>(EnumText<E>::names.size() - 1);
}
template <typename T>
void Change(const MlirRowFacts& row, std::optional<T>& value) {
  Change(row, value.emplace());
}
void Change(const MlirRowFacts&, std::optional<std::vector<Dims>>& value) {
  value = {{0, 1}, {}};
}
void Change(const MlirRowFacts&, std::optional<std::vector<std::vector<Dims>>>& value) {
  value = {{{8, 128}, {2}}};
}

void ChangeSpecial(CustomCallAttrs& attrs, std::string_view) {
  attrs.backend_config = "text";
}
void ChangeSpecial(DotAttrs& attrs, std::string_view) {
  attrs.algorithm = {"bf16", "f16", "f32", 2, 3, 6, true};
}
void ChangeSpecial(CollectiveAttrs& attrs, std::string_view name) {
  if (name == "replica_groups") attrs.groups.lists = {{0, 1, 2}, {3}};
  if (name == "channel_handle") attrs.channel_id = 3;
}
void ChangeSpecial(PermuteAttrs& attrs, std::string_view) {
  attrs.channel_id = 3;
}
void ChangeSpecial(ShardingOpAttrs& attrs, std::string_view) {
  attrs.direction = "FORWARD";
}

// ---- attributes that satisfy the rows before one of them is changed

template <typename A>
void Prepare(const MlirRowFacts&, Op, A&) {}
void Prepare(const MlirRowFacts&, Op, ConstantAttrs& attrs) {
  attrs.literal = Literal::Splat(Square(), Literal::Scalar(ElementType::kF32, 1).data());
}
void Prepare(const MlirRowFacts&, Op, SliceAttrs& attrs) {
  attrs = {{0, 0}, {2, 2}, {1, 1}};
}
void Prepare(const MlirRowFacts&, Op, PadAttrs& attrs) {
  attrs = {{0, 0}, {2, 2}, {0, 0}};
}
void Prepare(const MlirRowFacts&, Op, DotAttrs& attrs) {
  attrs.lhs_contracting = {1};
  attrs.rhs_contracting = {0};
}
void Prepare(const MlirRowFacts&, Op, WindowAttrs& attrs) {
  attrs.window.resize(2);
}
void Prepare(const MlirRowFacts&, Op, ConvolutionAttrs& attrs) {
  attrs.dims.input_spatial = attrs.dims.kernel_spatial = attrs.dims.output_spatial = {0, 1};
  attrs.window.resize(2);
  for (WindowDim& dim : attrs.window) dim.size = 2;
}
void Prepare(const MlirRowFacts&, Op, CustomCallAttrs& attrs) {
  attrs.target = "target";
}
void Prepare(const MlirRowFacts&, Op, CompositeAttrs& attrs) {
  attrs.name = "composite";
}
void Prepare(const MlirRowFacts&, Op op, CollectiveAttrs& attrs) {
  if (op == Op::kAllGather || op == Op::kReduceScatter || op == Op::kAllToAll)
    attrs.dimensions = {0};
}
void Prepare(const MlirRowFacts&, Op op, ShardingOpAttrs& attrs) {
  if (op == Op::kShardingConstraint || op == Op::kReshard) {
    attrs.sharding.kind = ShardingKind::kMesh;
    attrs.sharding.mesh = "other";
  }
  if (op == Op::kShardingGroup) attrs.group = 0;
}

// ---- the program around the instruction

Computation* AddBody(Module& module, std::string name, const Shape& shape) {
  Computation* body = module.AddComputation(std::move(name));
  body->is_public = false;
  Instr* x = body->AppendParameter(0, shape);
  Instr* y = body->AppendParameter(1, shape);
  body->set_root(body->Append(Op::kAdd, shape, {x, y}));
  return body;
}

// A program with one instruction of the op. Shapes need not fit: nothing infers them.
std::unique_ptr<Module> ProgramWith(Op op, Attrs attrs) {
  auto module = std::make_unique<Module>("program");
  module->meshes.push_back({"mesh", {{"x", 2}}, {}});
  module->meshes.push_back({"other", {{"x", 4}}, {}});
  const Shape shape = Square();
  std::vector<Computation*> called;
  for (std::string_view role : CalledRoles(op)) {
    if (role.ends_with('*')) continue;
    called.push_back(AddBody(*module, "body" + std::to_string(called.size()), shape));
  }
  Computation* entry = module->AddComputation("main");
  module->set_entry(entry);
  int arity = InfoOf(op).arity;
  if (arity < 0) arity = op == Op::kRng ? 3 : 2;
  std::vector<Instr*> operands;
  for (int i = 0; i < arity; ++i) operands.push_back(entry->AppendParameter(i, shape));
  Instr* instr = entry->Append(op, shape, std::move(operands), std::move(attrs));
  instr->set_called(std::move(called));
  entry->set_root(instr);
  return module;
}

// The attributes with the fields of records among them, as bytecode has them. `names` are the
// properties of the op.
AttrDict FlatAttrs(const AttrDict& dict, std::span<const std::string_view> names) {
  AttrDict flat;
  for (const AttrEntry& entry : dict) {
    const auto* record = entry.value.As<RecordAttr>();
    const bool own = std::find(names.begin(), names.end(), entry.name) != names.end();
    if (record == nullptr || own) {
      Set(flat, entry.name, entry.value);
    } else if (entry.name == "channel_handle") {
      Set(flat, "channel_id", *Find(record->fields, "handle"));
      Set(flat, "channel_type", *Find(record->fields, "type"));
    } else {
      for (const AttrEntry& field : record->fields) Set(flat, field.name, field.value);
    }
  }
  std::erase_if(flat, [&](const AttrEntry& entry) {
    return std::find(names.begin(), names.end(), entry.name) == names.end();
  });
  return flat;
}

void ExpectReads(const Instr& instr, const AttrDict& dict, const std::string& what) {
  std::vector<MlirAttr> attrs;
  for (const AttrEntry& entry : dict) attrs.push_back({entry.name, entry.value});
  std::vector<Instr*> operands(instr.operands().begin(), instr.operands().end());
  MlirImporter importer("");
  MlirOpInput input;
  input.op = FindMlirOp(instr.info().mlir);
  input.attrs = attrs;
  input.operands = operands;
  MlirAttrReader reader(importer, input);
  Attrs back = ConverterOf(instr.op())(reader);
  EXPECT_FALSE(reader.failed()) << what << ": " << reader.TakeError().message;
  EXPECT_TRUE(EqualAttrs(instr.op(), back, instr.attrs())) << what << ": not read back";
}

void ExpectRoundTrips(Op op, const Attrs& attrs, const std::string& what) {
  auto module = ProgramWith(op, attrs);
  const Instr& instr = *module->entry()->root();
  AttrDict dict = MlirAttrsOf(instr);
  ExpectReads(instr, dict, what);
  if (instr.info().mlir.starts_with("stablehlo.")) {
    std::vector<std::string_view> names = VhloPropertiesOf(op, NewestVhloVersion(op));
    // An attribute that only text has is absent from bytecode.
    bool in_bytecode = what.find("(not VHLO)") == std::string::npos;
    if (in_bytecode) ExpectReads(instr, FlatAttrs(dict, names), what + " from bytecode");
  }
  const std::string mlir = WriteStablehloText(*module), hlo = WriteHloText(*module);
  // Async ops have an MLIR form only with futures as types.
  if (op != Op::kAsyncStart && op != Op::kAsyncDone) {
    EXPECT_EQ(mlir.find("\"tokamak."), std::string::npos) << what << ":\n" << mlir;
  }
  for (bool as_hlo : {false, true}) {
    const std::string& text = as_hlo ? hlo : mlir;
    auto back = as_hlo ? ReadHloText(text, "test.hlo") : ReadMlirText(text, "test.mlir");
    ASSERT_TRUE(back.ok()) << what << ": " << back.error().message << "\n" << text;
    EXPECT_EQ(FirstDifference(*module, *back.value()), "") << what << ":\n" << text;
  }
}

template <typename A, typename Value>
bool ChangeRow(const MlirRow<Value>& row, A& attrs) {
  if constexpr (requires { row.value.field; }) {
    Change(row.facts, row.value.field(attrs));
  } else if constexpr (requires { row.value.window; }) {
    for (WindowDim& dim : attrs.*row.value.window) {
      dim.*row.value.low = 1 + dim.*row.value.low;
      if (row.value.high != nullptr) dim.*row.value.high = 3;
    }
  } else if constexpr (requires { row.value.write; }) {
    ChangeSpecial(attrs, row.facts.name);
  } else {
    return false;  // a step, or what MlirBuilder and MlirWriter do
  }
  return !row.facts.obsolete;
}

// Each row of an op changes another field: two rows that are bound to one field would both round
// trip, and the field that lacks a row would be lost.
TEST(MlirAttributes, RowsOfAnOpHaveDifferentNamesAndFields) {
  for (const OpInfo& info : AllOps()) {
    if (info.mlir.empty()) continue;
    VisitAttrs(info.op, Attrs{}, [&]<typename A>(const A&) {
      std::vector<std::pair<std::string, A>> seen;
      VisitMlirRows<A>(info.op, [&](const auto& row) {
        A attrs = MlirDefault<A>();
        Prepare(row.facts, info.op, attrs);
        if (!ChangeRow(row, attrs)) return;
        std::string name(row.facts.name);
        for (const auto& [other, changed] : seen) {
          EXPECT_NE(name, other) << info.mlir;
          EXPECT_FALSE(attrs == changed) << info.mlir << ": " << name << " and " << other;
        }
        seen.emplace_back(std::move(name), std::move(attrs));
      });
    });
  }
}

TEST(MlirAttributes, EveryRowRoundTrips) {
  size_t rows = 0;
  for (const OpInfo& info : AllOps()) {
    if (info.mlir.empty() || info.op == Op::kCheckEq) continue;
    VisitAttrs(info.op, Attrs{}, [&]<typename A>(const A&) {
      VisitMlirRows<A>(info.op, [&](const auto& row) {
        A attrs = MlirDefault<A>();
        if constexpr (std::is_same_v<A, SortAttrs>) attrs.dimension = 0;
        Prepare(row.facts, info.op, attrs);
        const A before = attrs;
        if (!ChangeRow(row, attrs)) return;
        ++rows;
        std::string what = std::string(info.mlir) + ": " + std::string(row.facts.name);
        if (row.facts.vhlo.empty()) what += " (not VHLO)";
        EXPECT_FALSE(attrs == before) << what;
        ExpectRoundTrips(info.op, attrs, what);
      });
    });
  }
  EXPECT_GT(rows, 150u);
}

TEST(MlirAttributes, BytecodePropertiesAreThoseOfVhlo) {
  auto properties = [](Op op, int version) {
    std::string text;
    for (std::string_view name : VhloPropertiesOf(op, version))
      text.append(text.empty() ? "" : " ").append(name);
    return text;
  };
  EXPECT_EQ(properties(Op::kAdd, 1), "");
  EXPECT_EQ(NewestVhloVersion(Op::kAdd), 1);
  EXPECT_EQ(properties(Op::kExp, 1), "");
  EXPECT_EQ(properties(Op::kExp, 2), "result_accuracy");
  EXPECT_EQ(NewestVhloVersion(Op::kAllGather), 2);
  EXPECT_EQ(properties(Op::kAllGather, 2),
            "all_gather_dim channel_id replica_groups use_global_device_ids");
  EXPECT_EQ(properties(Op::kCollectiveBroadcast, 1), "channel_id replica_groups");
  EXPECT_EQ(properties(Op::kCollectiveBroadcast, 2), "channel_id has_dynamic_root replica_groups");
  EXPECT_EQ(properties(Op::kDot, 1),
            "lhs_batching_dimensions lhs_contracting_dimensions precision_config "
            "rhs_batching_dimensions rhs_contracting_dimensions");
  EXPECT_EQ(properties(Op::kDot, 2),
            "accumulation_type allow_imprecise_accumulation lhs_batching_dimensions "
            "lhs_component_count lhs_contracting_dimensions lhs_precision_type "
            "num_primitive_operations precision_config rhs_batching_dimensions rhs_component_count "
            "rhs_contracting_dimensions rhs_precision_type");
  EXPECT_NE(properties(Op::kDynamicConv, 1).find("padding"), std::string::npos);
  EXPECT_EQ(properties(Op::kDynamicConv, 2).find("padding"), std::string::npos);
  EXPECT_EQ(properties(Op::kRecv, 2),
            "channel_id channel_type is_host_transfer source_target_pairs");
  EXPECT_EQ(properties(Op::kCustomCall, 1),
            "api_version backend_config call_target_name called_computations has_side_effect "
            "operand_layouts output_operand_aliases result_layouts");
}

}  // namespace
}  // namespace tokamak
