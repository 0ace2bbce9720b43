// Writes StableHLO text. A computation that an op calls is printed in one of two ways:
//
//   * nested: as the op's region, as in ordinary MLIR programs. Only if parsing it gives back the
//     same module: each computation is called once, computations are in the order in which their
//     regions are visited, and captures are in the order of first use.
//   * flat: every computation is a function, in order. A region only calls its function, and
//     tokamak.called names it, so that the reader drops the region. Modules from HLO text are
//     printed this way.
//
// Attributes "tokamak.*" hold information that MLIR cannot express; readers of plain StableHLO
// ignore them.

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/compare.h"
#include "support/limits.h"
#include "text/hlo_sharding.h"
#include "text/mlir_layout.h"
#include "text/mlir_ops.h"
#include "text/mlir_plain.h"
#include "text/mlir_print.h"
#include "text/mlir_sdy.h"
#include "text/mlir_write_plan.h"
#include "text/write.h"

namespace tokamak {
namespace {

class MlirWriter {
 public:
  explicit MlirWriter(const Module& module) : module_(module), plan_(PlanMlirText(module)) {}

  std::string Run() {
    Header();
    for (const Mesh& mesh : module_.meshes) {
      out_ += "  sdy.mesh ";
      PrintSymbol(out_, mesh.name);
      out_ += " = ";
      PrintMesh(out_, mesh);
      out_ += '\n';
    }
    for (const auto& computation : module_.computations())
      if (!plan_.nested || !plan_.regions.contains(computation.get())) Function(*computation);
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  // ---- module and functions

  void Header() {
    AttrDict attrs = module_.attributes;
    if (module_.num_partitions != 1)
      Set(attrs, "mhlo.num_partitions", {IntAttr{module_.num_partitions, "i32"}});
    if (module_.num_replicas != 1)
      Set(attrs, "mhlo.num_replicas", {IntAttr{module_.num_replicas, "i32"}});
    if (!module_.frontend_attributes.empty())
      Set(attrs, "mhlo.frontend_attributes", {module_.frontend_attributes});
    AttrDict facts = ModuleFactsOf(module_, plan_.plain_aliases);
    if (!facts.empty()) Set(attrs, "tokamak.module", {std::move(facts)});
    out_ += "module";
    if (!module_.name().empty()) {
      out_ += ' ';
      PrintSymbol(out_, module_.name());
    }
    if (!attrs.empty()) {
      out_ += " attributes ";
      PrintDict(out_, attrs);
    }
    out_ += " {\n";
  }

  void Function(const Computation& computation) {
    names_.clear();
    next_ = 0;
    bool many = ReturnsMany(computation);
    out_ += computation.is_public ? "  func.func public " : "  func.func private ";
    PrintSymbol(out_, plan_.names.at(&computation));
    out_ += '(';
    for (size_t i = 0; i < computation.parameters().size(); ++i) {
      if (i > 0) out_ += ", ";
      const Instr* parameter = computation.parameter(i);
      names_[parameter] = "%arg" + std::to_string(i);
      out_ += names_[parameter] + ": ";
      PrintType(out_, parameter->shape());
      AttrDict attrs = ParameterAttrsOf(*parameter);
      if (!attrs.empty()) {
        out_ += ' ';
        PrintDict(out_, attrs);
      }
    }
    out_ += ") -> (";
    const Shape& result = computation.root()->shape();
    size_t count = many ? result.elements().size() : 1;
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) out_ += ", ";
      PrintType(out_, many ? result.elements()[i] : result);
      AttrDict attrs = ResultAttrsOf(computation, i);
      if (attrs.empty()) continue;
      out_ += ' ';
      PrintDict(out_, attrs);
    }
    out_ += ')';
    AttrDict attrs = computation.attributes;
    if (!computation.execution_thread.empty())
      Set(attrs, "execution_thread", {computation.execution_thread});
    if (!attrs.empty()) {
      out_ += " attributes ";
      PrintDict(out_, attrs);
    }
    out_ += " {\n";
    Body(computation, "func.return", 2);
    out_ += "  }\n";
  }

  AttrDict ParameterAttrsOf(const Instr& parameter) {
    AttrDict attrs = ExtrasOf(parameter, false);
    if (parameter.parent() != module_.entry() || !plan_.plain_aliases) return attrs;
    int64_t number = parameter.attrs<ParameterAttrs>().number;
    for (const InputOutputAlias& alias : module_.aliases)
      if (alias.parameter == number)
        Set(attrs, "tf.aliasing_output",
            {IntAttr{alias.output.empty() ? 0 : alias.output[0], "i32"}});
    for (const BufferDonor& donor : module_.donors)
      if (donor.parameter == number) Set(attrs, "jax.buffer_donor", {true});
    return attrs;
  }

  AttrDict ResultAttrsOf(const Computation& computation, size_t i) {
    if (i >= computation.results.size()) return {};
    AttrDict attrs = computation.results[i].attributes;
    if (computation.results[i].sharding)
      PutSharding(attrs, *computation.results[i].sharding, false);
    return attrs;
  }

  // ---- bodies

  void Indent(int level) { out_.append(static_cast<size_t>(level) * 2, ' '); }

  void Body(const Computation& computation, const char* terminator, int level) {
    bool many = ReturnsMany(computation);
    std::vector<Instr*> instrs = computation.Instrs();
    for (size_t i = 0; i < instrs.size(); ++i) {
      const Instr& instr = *instrs[i];
      if (instr.op() == Op::kParameter || names_.contains(&instr)) continue;
      if (many && &instr == computation.root()) continue;
      // The results that are extracted right after the op, in order.
      size_t taken = 0;
      while (HasManyResults(instr) && i + taken + 1 < instrs.size() &&
             IsElement(*instrs[i + taken + 1], instr, taken))
        ++taken;
      Instruction(instr, taken, level + 1);
      for (size_t k = 0; k < taken; ++k)
        names_[instrs[i + k + 1]] = prefix_ + "#" + std::to_string(k);
    }
    Indent(level + 1);
    out_ += terminator;
    const Instr& root = *computation.root();
    std::vector<const Instr*> values;
    if (many) {
      values.assign(root.operands().begin(), root.operands().end());
    } else {
      values = {&root};
    }
    for (size_t i = 0; i < values.size(); ++i) {
      out_ += i > 0 ? ", " : " ";
      out_ += names_[values[i]];
    }
    for (size_t i = 0; i < values.size(); ++i) {
      out_ += i > 0 ? ", " : " : ";
      PrintType(out_, values[i]->shape());
    }
    out_ += '\n';
  }

  static bool IsElement(const Instr& instr, const Instr& of, size_t index) {
    return instr.op() == Op::kGetTupleElement && instr.operand(0) == &of && !instr.has_extras() &&
           index < of.shape().elements().size() &&
           instr.attrs<TupleIndexAttrs>().index == static_cast<int64_t>(index) &&
           instr.shape() == of.shape().elements()[index] && instr.shape().layout() == nullptr;
  }

  static bool IsUsedWhole(const Instr& instr, size_t taken) {
    if (instr.parent()->root() == &instr) return true;
    return instr.users().size() > taken;
  }

  void Instruction(const Instr& instr, size_t taken, int level) {
    const bool many =
        HasManyResults(instr) && !(instr.shape().elements().empty() && IsUsedWhole(instr, taken));
    const size_t results = many ? instr.shape().elements().size() : 1;
    Indent(level);
    prefix_ = "%" + std::to_string(next_);
    if (results > 0) {
      ++next_;
      out_ += prefix_;
      if (many && results > 1) out_ += ":" + std::to_string(results);
      out_ += " = ";
    }
    const std::string own = prefix_;
    AttrDict attrs = ExtrasOf(instr, true);
    if (many && taken != results)
      Set(attrs, "tokamak.results", {IntAttr{.value = static_cast<int64_t>(taken)}});
    Operation(instr, std::move(attrs), many, level);
    out_ += '\n';
    prefix_ = own;
    if (!many) {
      names_[&instr] = own;
    } else if (IsUsedWhole(instr, taken)) {
      WholeTuple(instr, own, level);
    } else {
      names_[&instr] = own;
    }
  }

  // %1 = stablehlo.tuple %0#0, %0#1 {tokamak.whole}
  void WholeTuple(const Instr& instr, const std::string& own, int level) {
    Indent(level);
    names_[&instr] = "%" + std::to_string(next_++);
    out_ += names_[&instr] + " = stablehlo.tuple ";
    for (size_t i = 0; i < instr.shape().elements().size(); ++i)
      out_ += (i > 0 ? ", " : "") + own + "#" + std::to_string(i);
    out_ += " {tokamak.whole} : ";
    PrintType(out_, instr.shape());
    out_ += '\n';
  }

  // ---- ops

  void Operation(const Instr& instr, AttrDict extras, bool many, int level) {
    if (instr.op() == Op::kConstant && PrintConstant(instr, extras)) return;
    std::string name = MlirNameOf(instr);
    AttrDict attrs = MlirAttrsOf(instr);
    bool foreign = name.empty() || !ReadsBack(instr, name, attrs);
    if (foreign) {
      name = "tokamak." + std::string(instr.info().name);
      attrs = ToPlainDict(instr.op(), instr.attrs());
    }
    size_t shown = instr.operand_count();
    bool regions = !foreign && CallsByRegion(instr);
    if (regions) shown -= HiddenOperands(instr);
    if (!foreign) PutSymbols(instr, attrs);
    if (!instr.called().empty() && (foreign || (regions && !plan_.nested)))
      Set(extras, "tokamak.called", CalledNames(instr));
    bool counts = !regions || !plan_.nested;
    if (counts && instr.captures() > 0)
      Set(extras, "tokamak.captures", {IntAttr{.value = static_cast<int64_t>(instr.captures())}});
    out_ += '"' + name + "\"(";
    for (size_t i = 0; i < shown; ++i) out_ += (i > 0 ? ", " : "") + names_[instr.operand(i)];
    out_ += ')';
    if (!attrs.empty()) {
      out_ += " <";
      PrintDict(out_, attrs);
      out_ += '>';
    }
    if (regions) Regions(instr, level);
    if (!extras.empty()) {
      out_ += ' ';
      PrintDict(out_, extras);
    }
    out_ += " : (";
    for (size_t i = 0; i < shown; ++i) {
      if (i > 0) out_ += ", ";
      PrintType(out_, instr.operand(i)->shape());
    }
    out_ += ") -> ";
    ResultTypes(instr, many);
  }

  void ResultTypes(const Instr& instr, bool many) {
    if (!many) return PrintType(out_, instr.shape());
    out_ += '(';
    for (size_t i = 0; i < instr.shape().elements().size(); ++i) {
      if (i > 0) out_ += ", ";
      PrintType(out_, instr.shape().elements()[i]);
    }
    out_ += ')';
  }

  bool PrintConstant(const Instr& instr, AttrDict& extras) {
    const Literal& literal = instr.attrs<ConstantAttrs>().literal;
    if (!literal.shape().IsArray()) return false;
    if (instr.shape().quant() != nullptr) {
      out_ += "\"stablehlo.constant\"() <{value = ";
      PrintDense(out_, literal);
      out_ += "}> ";
      if (!extras.empty()) PrintDict(out_, extras);
      out_ += " : () -> ";
      PrintType(out_, instr.shape());
      return true;
    }
    out_ += "stablehlo.constant ";
    if (!extras.empty()) {
      PrintDict(out_, extras);
      out_ += ' ';
    }
    PrintDense(out_, literal);
    return true;
  }

  // Whether the printed attributes parse back to those of the instruction.
  bool ReadsBack(const Instr& instr, const std::string& name, const AttrDict& dict) {
    if (instr.op() == Op::kRunParallel) return true;
    if (instr.op() == Op::kCheckEq) return instr.operand_count() == 2;
    const MlirOp* op = FindMlirOp(name);
    if (op == nullptr || op->convert == nullptr) return false;
    std::vector<MlirAttr> attrs;
    for (const AttrEntry& entry : dict) attrs.push_back({entry.name, entry.value});
    std::vector<Instr*> operands(instr.operands().begin(), instr.operands().end());
    MlirOpInput input;
    input.op = op;
    input.attrs = attrs;
    input.operands = operands;
    MlirAttrReader reader(importer_, input);
    Attrs back = op->convert(reader);
    return !reader.failed() && EqualAttrs(instr.op(), back, instr.attrs());
  }

  void PutSymbols(const Instr& instr, AttrDict& attrs) {
    auto symbol = [&](size_t i) -> AttrValue {
      return {SymbolAttr{plan_.names.at(instr.called(i))}};
    };
    switch (instr.op()) {
      case Op::kCall:
        Set(attrs, "callee", symbol(0));
        break;
      case Op::kComposite:
        if (!instr.called().empty()) Set(attrs, "decomposition", symbol(0));
        break;
      case Op::kCustomCall: {
        AttrList list;
        for (size_t i = 0; i < instr.called().size(); ++i) list.push_back(symbol(i));
        if (!list.empty()) Set(attrs, "called_computations", {std::move(list)});
        break;
      }
      case Op::kCheckEq:
        Set(attrs, "call_target_name", {std::string("check.eq")});
        break;
      case Op::kRunParallel: {
        const RunParallelAttrs& run = instr.attrs<RunParallelAttrs>();
        AttrList rows, infeed;
        for (const Dims& row : run.programs) {
          AttrList list;
          for (int64_t i : row) list.push_back(symbol(static_cast<size_t>(i)));
          rows.push_back({std::move(list)});
        }
        for (const std::string& feed : run.infeed) infeed.push_back({SymbolAttr{feed}});
        Set(attrs, "programs", {std::move(rows)});
        if (!infeed.empty()) Set(attrs, "infeed", {std::move(infeed)});
        break;
      }
      default:
        break;  // other ops reference no function
    }
  }

  AttrValue CalledNames(const Instr& instr) {
    AttrList list;
    for (const Computation* called : instr.called())
      list.push_back({SymbolAttr{plan_.names.at(called)}});
    return {std::move(list)};
  }

  // ---- regions

  // Operands that the MLIR op does not list: captures, arguments of branches.
  static size_t HiddenOperands(const Instr& instr) {
    if (instr.op() == Op::kConditional) return instr.operand_count() - 1;
    return instr.captures();
  }

  void Regions(const Instr& instr, int level) {
    out_ += " (";
    size_t branch_operand = 1;
    size_t first = instr.op() == Op::kComposite ? 1 : 0;
    for (size_t i = first; i < instr.called().size(); ++i) {
      const Computation& region = *instr.called(i);
      out_ += i > first ? ", {\n" : "{\n";
      size_t own = region.parameters().size() -
                   std::min(HiddenOf(instr, region), region.parameters().size());
      if (own > 0) {
        Indent(level);
        out_ += "^bb0(";
      }
      for (size_t k = 0; k < region.parameters().size(); ++k) {
        const Instr* parameter = region.parameter(k);
        if (k >= own) {
          size_t operand = instr.op() == Op::kConditional
                               ? branch_operand++
                               : instr.operand_count() - instr.captures() + (k - own);
          // Invalid programs may have too few operands; they are printed anyway.
          region_values_[parameter] =
              operand < instr.operand_count() ? names_[instr.operand(operand)] : "%none";
          continue;
        }
        region_values_[parameter] = "%r" + std::to_string(next_++);
        out_ += (k > 0 ? ", " : "") + region_values_[parameter] + ": ";
        PrintType(out_, parameter->shape());
      }
      if (own > 0) out_ += "):\n";
      if (plan_.nested) {
        for (const Instr* parameter : region.parameters())
          names_[parameter] = region_values_[parameter];
        Body(region, instr.op() == Op::kManualComputation ? "sdy.return" : "stablehlo.return",
             level);
      } else {
        CallRegion(instr, region, level);
      }
      Indent(level);
      out_ += '}';
    }
    out_ += ')';
  }

  static size_t HiddenOf(const Instr& instr, const Computation& region) {
    return instr.op() == Op::kConditional ? region.parameters().size() : instr.captures();
  }

  // A region that only calls its function.
  void CallRegion(const Instr& instr, const Computation& region, int level) {
    bool many = ReturnsMany(region);
    const Shape& shape = region.root()->shape();
    size_t results = many ? shape.elements().size() : 1;
    std::string call = "%" + std::to_string(next_++);
    Indent(level + 1);
    if (results > 0) out_ += call;
    if (results > 1) out_ += ":" + std::to_string(results);
    out_ += results > 0 ? " = func.call " : "func.call ";
    PrintSymbol(out_, plan_.names.at(&region));
    out_ += '(';
    for (size_t k = 0; k < region.parameters().size(); ++k)
      out_ += (k > 0 ? ", " : "") + region_values_[region.parameter(k)];
    out_ += ") : (";
    for (size_t k = 0; k < region.parameters().size(); ++k) {
      if (k > 0) out_ += ", ";
      PrintType(out_, region.parameter(k)->shape());
    }
    out_ += ") -> ";
    auto types = [&] {
      for (size_t k = 0; k < results; ++k) {
        if (k > 0) out_ += ", ";
        PrintType(out_, many ? shape.elements()[k] : shape);
      }
    };
    out_ += '(';
    types();
    out_ += ")\n";
    Indent(level + 1);
    out_ += instr.op() == Op::kManualComputation ? "sdy.return" : "stablehlo.return";
    for (size_t k = 0; k < results; ++k)
      out_ += (k > 0 ? ", " : " ") + call + (results > 1 ? "#" + std::to_string(k) : "");
    if (results > 0) out_ += " : ";
    types();
    out_ += '\n';
  }

  // ---- attributes of any op

  void PutSharding(AttrDict& attrs, const Sharding& sharding, bool of_op) {
    bool mesh =
        sharding.kind == ShardingKind::kMesh && sharding.shard_as < 0 && sharding.shard_like < 0;
    if (mesh && !of_op) {
      Set(attrs, "sdy.sharding", ToAttr(sharding));
    } else if (mesh) {
      Set(attrs, "sdy.sharding", ShardingsToAttr({sharding}));
    } else {
      Set(attrs, "tokamak.sharding", ToPlainAttr(sharding));
      AttrDict known;
      std::string text = WriteHloSharding(sharding, module_.meshes);
      std::vector<Mesh> meshes = module_.meshes;
      Result<Sharding> back = ParseHloSharding(text, meshes);
      if (!back.ok() || !(back.value() == sharding) || meshes != module_.meshes) return;
      std::erase_if(attrs, [](const AttrEntry& e) { return e.name == "tokamak.sharding"; });
      Set(attrs, "mhlo.sharding", {std::move(text)});
    }
  }

  AttrDict ExtrasOf(const Instr& instr, bool of_op) {
    AttrDict attrs;
    if (instr.shape().IsArray() ? instr.shape().layout() != nullptr : true)
      if (std::optional<AttrValue> layout = LayoutToAttr(instr.shape()))
        Set(attrs, "tokamak.layout", std::move(*layout));
    if (!instr.has_extras()) return attrs;
    const InstrExtras& extras = instr.extras();
    for (const AttrEntry& entry : extras.discardable) Set(attrs, entry.name, entry.value);
    if (extras.sharding) PutSharding(attrs, *extras.sharding, of_op);
    if (extras.sharding_rule) Set(attrs, "sdy.sharding_rule", ToAttr(*extras.sharding_rule));
    if (!extras.frontend_attributes.empty())
      Set(attrs, "mhlo.frontend_attributes", {extras.frontend_attributes});
    if (!extras.backend_config.empty())
      Set(attrs, "tokamak.backend_config", {extras.backend_config});
    if (extras.control_predecessors.empty()) return attrs;
    DenseArrayAttr control{"i64", {}, {}};
    for (const Instr* before : extras.control_predecessors)
      control.ints.push_back(PositionOf(*before));
    Set(attrs, "tokamak.control", {std::move(control)});
    return attrs;
  }

  // Counts parameters first, as the reader does.
  int64_t PositionOf(const Instr& instr) {
    auto& positions = positions_[instr.parent()];
    if (positions.empty()) {
      int64_t next = 0;
      for (const Instr* parameter : instr.parent()->parameters()) positions[parameter] = next++;
      for (const Instr* other : instr.parent()->Instrs())
        if (other->op() != Op::kParameter) positions[other] = next++;
    }
    return positions.at(&instr);
  }

  const Module& module_;
  MlirTextPlan plan_;
  MlirImporter importer_{""};  // only for ReadsBack
  std::string out_;
  std::string prefix_;
  size_t next_ = 0;
  std::unordered_map<const Instr*, std::string> names_, region_values_;
  std::unordered_map<const Computation*, std::unordered_map<const Instr*, int64_t>> positions_;
};

}  // namespace

std::string WriteStablehloText(const Module& module) {
  return MlirWriter(module).Run();
}

}  // namespace tokamak
