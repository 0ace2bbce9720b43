#include <unordered_map>

#include <fmt/format.h>

#include "driver/report/views.h"
#include "driver/report/write.h"

namespace tokamak {
namespace {

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

class DotWriter {
 public:
  explicit DotWriter(const CompileReport& report) : report_(report) {}

  std::string Write(const std::string& title) {
    out_ = "digraph " + Quoted(title) + " {\n";
    out_ += "  compound=true; rankdir=TB; node [shape=box, fontsize=10]; edge [fontsize=9];\n";
    for (size_t i = 0; i < report_.steps.size(); ++i) AddCluster(i);
    for (size_t i = 0; i < report_.steps.size(); ++i) AddEdges(i);
    AddResults();
    return out_ + "}\n";
  }

 private:
  static std::string NodeOf(size_t step, size_t op) { return fmt::format("s{}_{}", step, op); }

  void AddCluster(size_t number) {
    const StepReport& step = report_.steps[number];
    std::string label = fmt::format("{} {}\\n{} moved", step.generator, step.name,
                                    BytesText(step.reads + step.writes));
    if (step.predicted_us) label += fmt::format(", {:.3g} us", *step.predicted_us);
    if (step.runs() != 1) label += fmt::format(", {} times", step.runs());
    out_ += fmt::format("  subgraph cluster_{} {{ label=\"{}\"; style=rounded;\n", number, label);
    if (step.instrs.empty()) out_ += fmt::format("    {} [label=copy];\n", NodeOf(number, 0));
    for (size_t i = 0; i < step.instrs.size(); ++i)
      out_ += fmt::format("    {} [label={}];\n", NodeOf(number, i), Quoted(step.instrs[i]));
    out_ += "  }\n";
    for (const Instr* value : step.made) producers_[value] = number;
  }

  // The value under which these bytes are stored: looks through renames and reshapes.
  const Instr* StoredAs(const Instr* value) const {
    while (!producers_.contains(value) && value->operand_count() == 1 && IsName(*value))
      value = value->operand(0);
    return value;
  }

  static bool IsName(const Instr& instr) {
    return instr.op() == Op::kBitcast || instr.op() == Op::kReshape ||
           instr.op() == Op::kGetTupleElement || instr.op() == Op::kCopy;
  }

  // A step, or a node outside of all steps: a parameter, a loop.
  std::string SourceOf(const Instr* value) {
    const Instr* stored = StoredAs(value);
    if (auto made = producers_.find(stored); made != producers_.end())
      return NodeOf(made->second, 0);
    auto [at, is_new] = outside_.try_emplace(stored, outside_.size());
    std::string node = fmt::format("v{}", at->second);
    if (is_new)
      out_ += fmt::format("  {} [label={}, shape=ellipse];\n", node, Quoted(LabelOf(*stored)));
    return node;
  }

  void AddEdge(const std::string& from, const std::string& to, const Instr& value,
               const std::string& more) {
    int64_t bytes = BytesOfLeaves(value.shape());
    bool clustered = from[0] == 's';
    std::string tail =
        clustered ? ", ltail=cluster_" + from.substr(1, from.find('_') - 1) : std::string();
    out_ += fmt::format("  {} -> {} [label=\"{}\"{}{}];\n", from, to, BytesText(bytes), tail, more);
  }

  void AddEdges(size_t number) {
    for (const Instr* value : report_.steps[number].read)
      AddEdge(SourceOf(value), NodeOf(number, 0), *value,
              fmt::format(", lhead=cluster_{}", number));
  }

  void AddResults() {
    if (report_.steps.empty()) return;
    const Instr* root = report_.module().entry()->root();
    out_ += "  result [shape=ellipse];\n";
    if (root->op() != Op::kTuple) return AddEdge(SourceOf(root), "result", *root, "");
    for (const Instr* value : root->operands()) AddEdge(SourceOf(value), "result", *value, "");
  }

  const CompileReport& report_;
  std::string out_;
  std::unordered_map<const Instr*, size_t> producers_, outside_;
};

}  // namespace

std::string DotOf(const CompileReport& report, const std::string& title) {
  return DotWriter(report).Write(title);
}

}  // namespace tokamak
