#include <algorithm>
#include <memory>
#include <unordered_map>

#include "text/mlir_ops.h"
#include "text/mlir_pretty.h"

namespace tokamak {
namespace {

// Names in addition to those of ops.def.
struct Spelling {
  std::string_view name;
  Op op;
  MlirAction action;
};

constexpr Spelling kSpellings[] = {
    {"func.return", Op::kTuple, MlirAction::kReturn},
    {"return", Op::kTuple, MlirAction::kReturn},
    {"stablehlo.return", Op::kTuple, MlirAction::kReturn},
    {"mhlo.return", Op::kTuple, MlirAction::kReturn},
    {"sdy.return", Op::kTuple, MlirAction::kReturn},
    {"tokamak.return", Op::kTuple, MlirAction::kReturn},
    {"func.call", Op::kCall, MlirAction::kCall},
    {"call", Op::kCall, MlirAction::kCall},
    {"stablehlo.composite", Op::kComposite, MlirAction::kComposite},
    {"stablehlo.custom_call", Op::kCustomCall, MlirAction::kCustomCall},
    {"mhlo.custom_call", Op::kCustomCall, MlirAction::kCustomCall},
    {"stablehlo.if", Op::kConditional, MlirAction::kIf},
    {"stablehlo.case", Op::kConditional, MlirAction::kCase},
    {"stablehlo.while", Op::kWhile, MlirAction::kWhile},
    {"stablehlo.dot", Op::kDot, MlirAction::kDot},
    {"stablehlo.broadcast", Op::kBroadcast, MlirAction::kBroadcast},
    {"stablehlo.create_token", Op::kAfterAll, MlirAction::kPlain},
    {"stablehlo.tuple", Op::kTuple, MlirAction::kTuple},
    {"stablehlo.cross-replica-sum", Op::kAllReduce, MlirAction::kCrossReplicaSum},
    {"stablehlo.select_and_scatter", Op::kSelectAndScatter, MlirAction::kPlain},
    {"chlo.constant", Op::kConstant, MlirAction::kPlain},
    {"chlo.constant_like", Op::kConstant, MlirAction::kConstantLike},
    {"sdy.constant", Op::kConstant, MlirAction::kPlain},
    {"chlo.tan", Op::kTan, MlirAction::kPlain},
    {"chlo.scan", Op::kScan, MlirAction::kPlain},
    {"chlo.dynamic_reshape", Op::kDynamicReshape, MlirAction::kPlain},
    {"mhlo.topk", Op::kTopK, MlirAction::kPlain},
    {"mhlo.erf", Op::kErf, MlirAction::kPlain},
    {"mhlo.copy", Op::kCopy, MlirAction::kPlain},
    {"mhlo.ragged_dot", Op::kRaggedDot, MlirAction::kPlain},
    {"check.expect_eq_const", Op::kCheck, MlirAction::kPlain},
    {"check.expect_almost_eq", Op::kCheck, MlirAction::kPlain},
    {"check.expect_almost_eq_const", Op::kCheck, MlirAction::kPlain},
    {"check.expect_close", Op::kCheck, MlirAction::kPlain},
    {"check.expect_close_const", Op::kCheck, MlirAction::kPlain},
    {"check.expect_serialized_eq", Op::kCheck, MlirAction::kPlain},
    {"interpreter.run_parallel", Op::kRunParallel, MlirAction::kRunParallel},
    {"sdy.named_computation", Op::kCall, MlirAction::kNamedComputation},
    {"sdy.mesh", Op::kCall, MlirAction::kMesh},
    {"builtin.unrealized_conversion_cast", Op::kTuple, MlirAction::kCast},
    // chlo.broadcast_*: the op, applied after broadcasting both operands to one shape.
    {"chlo.broadcast_add", Op::kAdd, MlirAction::kChloBroadcast},
    {"chlo.broadcast_subtract", Op::kSubtract, MlirAction::kChloBroadcast},
    {"chlo.broadcast_multiply", Op::kMultiply, MlirAction::kChloBroadcast},
    {"chlo.broadcast_divide", Op::kDivide, MlirAction::kChloBroadcast},
    {"chlo.broadcast_remainder", Op::kRemainder, MlirAction::kChloBroadcast},
    {"chlo.broadcast_power", Op::kPower, MlirAction::kChloBroadcast},
    {"chlo.broadcast_maximum", Op::kMaximum, MlirAction::kChloBroadcast},
    {"chlo.broadcast_minimum", Op::kMinimum, MlirAction::kChloBroadcast},
    {"chlo.broadcast_and", Op::kAnd, MlirAction::kChloBroadcast},
    {"chlo.broadcast_or", Op::kOr, MlirAction::kChloBroadcast},
    {"chlo.broadcast_xor", Op::kXor, MlirAction::kChloBroadcast},
    {"chlo.broadcast_shift_left", Op::kShiftLeft, MlirAction::kChloBroadcast},
    {"chlo.broadcast_shift_right_logical", Op::kShiftRightLogical, MlirAction::kChloBroadcast},
    {"chlo.broadcast_shift_right_arithmetic", Op::kShiftRightArithmetic,
     MlirAction::kChloBroadcast},
    {"chlo.broadcast_atan2", Op::kAtan2, MlirAction::kChloBroadcast},
    {"chlo.broadcast_complex", Op::kComplex, MlirAction::kChloBroadcast},
    {"chlo.broadcast_compare", Op::kCompare, MlirAction::kChloBroadcast},
    {"chlo.broadcast_next_after", Op::kNextAfter, MlirAction::kChloBroadcast},
    {"chlo.broadcast_polygamma", Op::kPolygamma, MlirAction::kChloBroadcast},
    {"chlo.broadcast_zeta", Op::kZeta, MlirAction::kChloBroadcast},
    {"chlo.broadcast_select", Op::kSelect, MlirAction::kChloBroadcast},
};

using Table = std::unordered_map<std::string_view, std::unique_ptr<MlirOp>>;

void AddRow(Table& table, MlirOp row) {
  auto owned = std::make_unique<MlirOp>(std::move(row));
  std::string_view name = owned->name;
  owned->form = &PrettyFormOf(name);
  owned->keywords = MlirKeywordsOf(owned->op);
  table.emplace(name, std::move(owned));
}

Table MakeTable() {
  Table table;
  for (const Spelling& spelling : kSpellings)
    AddRow(table,
           {std::string(spelling.name), spelling.op, spelling.action, ConverterOf(spelling.op)});
  for (const OpInfo& info : AllOps()) {
    if (!info.mlir.empty())
      AddRow(table, {std::string(info.mlir), info.op, MlirAction::kPlain, ConverterOf(info.op)});
    AddRow(table,
           {"tokamak." + std::string(info.name), info.op, MlirAction::kPlain, &ReadPlainAttrs});
  }
  return table;
}

const Table& OpTable() {
  static const Table table = MakeTable();
  return table;
}

}  // namespace

const MlirOp* FindMlirOp(std::string_view name) {
  const Table& table = OpTable();
  auto it = table.find(name);
  return it == table.end() ? nullptr : it->second.get();
}

std::vector<std::string_view> MlirOpNames() {
  std::vector<std::string_view> names;
  for (const auto& [name, op] : OpTable())
    if (!name.starts_with("tokamak.")) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string_view NameOf(const MlirOp& op) {
  return op.name;
}

}  // namespace tokamak
