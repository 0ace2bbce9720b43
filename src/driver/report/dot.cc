#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "driver/report/stored_values.h"
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
  explicit DotWriter(const CompileReport& report) : report_(report), stored_(report) {}

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
  }

  // A step, or a node outside of all steps: a parameter, a loop.
  std::string SourceOf(const Instr* value) {
    const Instr* stored = stored_.StoredAs(value);
    if (std::optional<size_t> step = stored_.StepOf(stored)) return NodeOf(*step, 0);
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
  StoredValues stored_;
  std::string out_;
  std::unordered_map<const Instr*, size_t> outside_;
};

}  // namespace

std::string DotOf(const CompileReport& report, const std::string& title) {
  return DotWriter(report).Write(title);
}

}  // namespace tokamak
