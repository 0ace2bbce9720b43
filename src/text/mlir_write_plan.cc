#include "text/mlir_write_plan.h"

#include <unordered_set>

#include "support/limits.h"
#include "text/mlir_layout.h"

namespace tokamak {
namespace {

// Decides whether the nested form parses back to an equal module.
class NestingCheck {
 public:
  explicit NestingCheck(const Module& module) : module_(module) {}

  bool Run(std::unordered_set<const Computation*>& regions) {
    std::unordered_set<const Computation*> named;
    for (const auto& computation : module_.computations()) {
      for (const Instr* instr : computation->Instrs()) {
        size_t first = instr->op() == Op::kComposite ? 1 : 0;
        for (size_t i = 0; i < instr->called().size(); ++i) {
          const Computation* called = instr->called(i);
          bool by_region = i >= first && CallsByRegion(*instr) && !MlirNameOf(*instr).empty();
          if (!by_region) {
            named.insert(called);
          } else if (!regions.insert(called).second) {
            return false;
          }
        }
      }
    }
    for (const Computation* region : regions)
      if (named.contains(region) || !IsPlainRegion(*region)) return false;
    for (const auto& computation : module_.computations())
      if (!regions.contains(computation.get()) && !Visit(*computation, 0)) return false;
    return next_ == module_.computations().size();
  }

 private:
  bool IsPlainRegion(const Computation& region) const {
    if (&region == module_.entry() || region.is_public || !region.results.empty() ||
        !region.attributes.empty() || !region.execution_thread.empty() || region.root() == nullptr)
      return false;
    for (const Instr* parameter : region.parameters()) {
      if (parameter == nullptr || parameter->has_extras() || LayoutToAttr(parameter->shape()))
        return false;
    }
    return true;
  }

  // Computations must be in the order in which a reader encounters them.
  bool Visit(const Computation& computation, int depth) {
    if (depth > kMaxNesting / 4 || next_ >= module_.computations().size() ||
        module_.computations()[next_].get() != &computation)
      return false;
    ++next_;
    for (const Instr* instr : computation.Instrs()) {
      if (!CallsByRegion(*instr)) continue;
      size_t first = instr->op() == Op::kComposite ? 1 : 0;
      for (size_t i = first; i < instr->called().size(); ++i)
        if (!Visit(*instr->called(i), depth + 1)) return false;
      if (!CapturesInOrder(*instr, first)) return false;
    }
    return true;
  }

  bool CapturesInOrder(const Instr& instr, size_t first) const {
    bool branches = instr.op() == Op::kConditional;
    size_t hidden = branches ? instr.operand_count() - 1 : instr.captures();
    for (size_t i = instr.operand_count() - hidden; i < instr.operand_count(); ++i)
      if (instr.operand(i)->op() == Op::kConstant) return false;
    size_t seen = 0, next = 1;
    for (size_t i = first; i < instr.called().size(); ++i) {
      const Computation& region = *instr.called(i);
      size_t total = region.parameters().size();
      size_t own = branches ? 0 : total - std::min(total, hidden);
      if (branches) seen = 0;
      if (!FirstUsesInOrder(region, own, seen)) return false;
      if (!branches) continue;
      if (seen != total || !AllDiffer(instr.operands().subspan(next, total))) return false;
      next += total;
    }
    return branches || (seen == hidden && AllDiffer(instr.operands().last(hidden)));
  }

  // A region captures each value once.
  static bool AllDiffer(std::span<Instr* const> values) {
    std::unordered_set<const Instr*> seen(values.begin(), values.end());
    return seen.size() == values.size();
  }

  static bool FirstUsesInOrder(const Computation& region, size_t own, size_t& seen) {
    auto use = [&](const Instr* value) {
      if (value->op() != Op::kParameter) return true;
      size_t number = static_cast<size_t>(value->attrs<ParameterAttrs>().number);
      if (number < own + seen) return true;
      return number == own + seen++;
    };
    for (const Instr* instr : region.Instrs())
      for (const Instr* operand : instr->operands())
        if (!use(operand)) return false;
    return use(region.root());
  }

  const Module& module_;
  size_t next_ = 0;
};

bool HasPlainAliases(const Module& module) {
  if (module.entry() == nullptr) return module.aliases.empty() && module.donors.empty();
  int64_t last = -1;
  bool tuple = module.entry()->root()->shape().IsTuple();
  size_t parameters = module.entry()->parameters().size();
  for (const InputOutputAlias& alias : module.aliases) {
    if (alias.must || !alias.parameter_index.empty() || alias.parameter <= last ||
        alias.parameter >= static_cast<int64_t>(parameters) ||
        alias.output.size() != (tuple ? 1 : 0))
      return false;
    last = alias.parameter;
  }
  last = -1;
  for (const BufferDonor& donor : module.donors) {
    if (!donor.parameter_index.empty() || donor.parameter <= last ||
        donor.parameter >= static_cast<int64_t>(parameters))
      return false;
    last = donor.parameter;
  }
  return true;
}

AttrValue PlanInts(const Dims& values) {
  return {DenseArrayAttr{"i64", values, {}}};
}

}  // namespace

bool CallsByRegion(const Instr& instr) {
  switch (instr.op()) {
    case Op::kReduce:
    case Op::kReduceWindow:
    case Op::kSelectAndScatter:
    case Op::kScatter:
    case Op::kMap:
    case Op::kSort:
    case Op::kScan:
    case Op::kWhile:
    case Op::kConditional:
    case Op::kAllReduce:
    case Op::kReduceScatter:
    case Op::kCollectiveReduce:
    case Op::kManualComputation:
    case Op::kAsyncStart:
      return !instr.called().empty();
    case Op::kComposite:
      return instr.called().size() > 1;
    default:
      return false;  // no regions, or functions by name
  }
}

std::string MlirNameOf(const Instr& instr) {
  switch (instr.op()) {
    case Op::kConditional:
      return instr.operand_count() > 0 && instr.operand(0)->shape().type() == ElementType::kPred &&
                     instr.called().size() == 2
                 ? "stablehlo.if"
                 : "stablehlo.case";
    case Op::kAfterAll:
      return instr.operand_count() == 0 ? "stablehlo.create_token" : "stablehlo.after_all";
    case Op::kCheckEq:
      return "stablehlo.custom_call";
    case Op::kScan:
      return "chlo.scan";
    case Op::kAllReduce:
    case Op::kReduceScatter:
    case Op::kCollectiveReduce:
      // Groups given as mesh axes are printed in our own form.
      return instr.attrs<CollectiveAttrs>().groups.mesh.empty() ? std::string(instr.info().mlir)
                                                                : "";
    case Op::kRng:
      return instr.operand_count() == 3 ? "stablehlo.rng" : "";
    case Op::kCheck: {
      const CheckAttrs& attrs = instr.attrs<CheckAttrs>();
      std::string suffix = attrs.expected ? "_const" : "";
      if (attrs.kind == CheckKind::kAlmostEqual) return "check.expect_almost_eq" + suffix;
      if (attrs.kind == CheckKind::kClose) return "check.expect_close" + suffix;
      if (attrs.kind == CheckKind::kSerializedEqual) return "check.expect_serialized_eq";
      return "check.expect_eq" + suffix;
    }
    case Op::kCall:
      return instr.called().size() == 1 ? "func.call" : "";
    case Op::kAsyncStart:
    case Op::kAsyncDone:
      // HLO's start/done pair returns a tuple and names its computation twice.
      return instr.shape().kind() == ShapeKind::kFuture ||
                     (instr.op() == Op::kAsyncDone && instr.called().empty())
                 ? std::string(instr.info().mlir)
                 : "";
    default:
      return std::string(instr.info().mlir);
  }
}

bool HasManyResults(const Instr& instr) {
  if (!instr.shape().IsTuple() || instr.shape().elements().size() == 1) return false;
  switch (instr.op()) {
    case Op::kTuple:
    case Op::kGetTupleElement:
    case Op::kParameter:
    case Op::kConstant:
    case Op::kCopy:
    case Op::kDomain:
    case Op::kAddDependency:
    case Op::kBitcast:
    case Op::kShardingConstraint:
    case Op::kReshard:
    case Op::kProbe:
      return false;
    case Op::kWhile:
    case Op::kOptimizationBarrier:
      return instr.operand_count() == instr.shape().elements().size();
    case Op::kCall:
      return instr.called().empty() || ReturnsMany(*instr.called(0));
    default:
      return !instr.info().mlir.empty() || instr.op() == Op::kScan;
  }
}

bool ReturnsMany(const Computation& computation) {
  const Instr* root = computation.root();
  if (root == nullptr || root->op() != Op::kTuple || root->operand_count() == 1 ||
      !root->users().empty() || root->has_extras() || LayoutToAttr(root->shape()) ||
      root->shape().elements().size() != root->operand_count())
    return false;
  const Instr* last = nullptr;
  for (const Instr* instr : computation.Instrs())
    if (instr->op() != Op::kParameter) last = instr;
  if (last != root) return false;
  for (size_t i = 0; i < root->operand_count(); ++i)
    if (!(root->operand(i)->shape() == root->shape().elements()[i])) return false;
  return true;
}

MlirTextPlan PlanMlirText(const Module& module) {
  MlirTextPlan plan;
  plan.nested = NestingCheck(module).Run(plan.regions);
  plan.plain_aliases = HasPlainAliases(module);
  std::unordered_set<std::string> taken;
  if (module.entry() != nullptr) {
    plan.names[module.entry()] = "main";
    taken.insert("main");
  }
  for (const auto& computation : module.computations()) {
    if (computation.get() == module.entry()) continue;
    std::string base = computation->name().empty() ? "region" : computation->name();
    std::string name = base;
    // A module without an entry must not acquire one.
    bool reserved = name == "main";
    for (size_t i = 0; reserved || !taken.insert(name).second; ++i) {
      name = base + "_" + std::to_string(i);
      reserved = false;
    }
    plan.names[computation.get()] = std::move(name);
  }
  return plan;
}

AttrDict ModuleFactsOf(const Module& module, bool plain_aliases) {
  AttrDict facts;
  if (!plain_aliases && !module.aliases.empty()) {
    AttrList rows;
    for (const InputOutputAlias& alias : module.aliases) {
      AttrList row;
      row.push_back(PlanInts(alias.output));
      row.push_back(PlanInts({alias.parameter, alias.must ? 1 : 0}));
      row.push_back(PlanInts(alias.parameter_index));
      rows.push_back({std::move(row)});
    }
    Set(facts, "aliases", {std::move(rows)});
  }
  if (!plain_aliases && !module.donors.empty()) {
    AttrList rows;
    for (const BufferDonor& donor : module.donors) {
      Dims row{donor.parameter};
      row.insert(row.end(), donor.parameter_index.begin(), donor.parameter_index.end());
      rows.push_back(PlanInts(row));
    }
    Set(facts, "donors", {std::move(rows)});
  }
  if (!module.entry_parameter_layouts.empty()) {
    AttrList list;
    for (const Shape& shape : module.entry_parameter_layouts) list.push_back(ShapeToAttr(shape));
    Set(facts, "entry_parameters", {std::move(list)});
  }
  if (module.entry_result_layout)
    Set(facts, "entry_result", ShapeToAttr(*module.entry_result_layout));
  return facts;
}

}  // namespace tokamak
