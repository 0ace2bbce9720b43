// Programs to look at and to edit, and their plans; included by <tokamak/tokamak.h>.
//
//   auto graph = tokamak::Graph::Of(*module);
//   for (const tokamak::Instruction& dot : graph->FindOp("dot")) std::puts(dot.name.c_str());
//   auto plan = graph->MakePlan();
//   std::puts(plan->Why(0).c_str());                       // why these instructions are one kernel
//   auto error = graph->Replace(dot, *fragment);           // a program of the operands' types
//   auto program = graph->MakePlan()->Compile();
//
// An edit that fails leaves the graph as it was. A graph and a plan may be used by one thread at a
// time.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tokamak/program.h>

namespace tokamak {

// An instruction as it was when the graph was asked for it. Its number identifies it as long as no
// edit removes it.
struct Instruction {
  int64_t number = -1;
  std::string name;       // unique in the graph
  std::string op;         // as in HLO: "dot"
  std::string type_text;  // "f32[2,3]", "(f32[2], s32[])"
  Shape shape;            // of an array; otherwise of the type kNone
  size_t computation = 0;
  std::vector<int64_t> operands, users;  // numbers
  std::vector<size_t> called;            // computations
  std::string scope;                     // "jit(f)/layer/tanh"; may be empty
  std::string line;                      // "train.py:12 (loss)"; may be empty
};

// A step of a plan: a kernel, a library call, a host step or a copy.
struct Step {
  std::string name, generator, schedule;
  int64_t reads_bytes = 0, writes_bytes = 0;
  int64_t calls = -1;                        // per call of the program; -1: data-dependent
  double predicted_us = 0, measured_us = 0;  // of one run; NaN: unknown
  std::vector<int64_t> instructions;         // numbers
};

// An instance of a pattern, by numbers.
struct Match {
  std::vector<int64_t> results, variables;  // one per result and parameter of the pattern
  std::vector<int64_t> inner;               // other instructions; others may use them, too
};

// How a graph was compiled. It does not change with the graph.
class Plan {
 public:
  const std::vector<Step>& steps() const { return steps_; }
  double predicted_us() const { return tok_plan_predicted_us(plan_.get()); }  // of one run
  // The steps that compute an instruction, in execution order.
  std::vector<size_t> StepsOf(int64_t instruction) const {
    const size_t* steps = nullptr;
    size_t count = tok_plan_steps_of(plan_.get(), instruction, &steps);
    return {steps, steps + count};
  }
  // Why instructions share a step, and what keeps its neighbours apart; empty if there is no such
  // step.
  std::string Why(size_t step) const {
    const char* text = nullptr;
    return Taken(tok_plan_why(plan_.get(), step, &text, nullptr), text);
  }
  // Why no step computes both instructions; empty if one does, or if no step computes one of them.
  std::string Boundary(int64_t producer, int64_t consumer) const {
    const char* text = nullptr;
    return Taken(tok_plan_boundary(plan_.get(), producer, consumer, &text, nullptr), text);
  }
  // JSON: the compile report with the program after the passes; all decisions.
  std::string Json() const {
    const char* text = nullptr;
    return Taken(tok_plan_json(plan_.get(), &text), text);
  }
  std::string Decisions() const {
    const char* text = nullptr;
    return Taken(tok_plan_decisions(plan_.get(), &text), text);
  }
  // The report as text; with {"html", "true"} or {"dot", "true"} another view.
  Result<std::string> Explain(const Options& options = {}) const {
    std::vector<tok_option> given = InC(options);
    const char* text = nullptr;
    tok_error* error = tok_plan_explain(plan_.get(), given.data(), given.size(), &text);
    if (error != nullptr) return Error(error);
    return std::string(text);
  }
  // The steps that only one of two plans has, as text.
  std::string Diff(const Plan& after) const {
    const char* text = nullptr;
    return Taken(tok_plan_diff(plan_.get(), after.plan_.get(), &text, nullptr), text);
  }
  // Generates the code of exactly this plan. Its target must be the processor of this process.
  Result<Executable> Compile() const {
    tok_executable* executable = nullptr;
    if (tok_error* error = tok_plan_compile(plan_.get(), &executable)) return Error(error);
    return Executable(executable);
  }

 private:
  friend class Graph;
  explicit Plan(tok_plan* plan) : plan_(plan, tok_plan_free) {
    for (size_t i = 0; i < tok_plan_num_steps(plan); ++i) {
      const tok_step& step = *tok_plan_step(plan, i);
      steps_.push_back({step.name,
                        step.generator,
                        step.schedule,
                        step.reads_bytes,
                        step.writes_bytes,
                        step.calls,
                        step.predicted_us,
                        step.measured_us,
                        {step.instructions, step.instructions + step.num_instructions}});
    }
  }
  static std::string Taken(tok_error* error, const char* const& text) {
    tok_error_free(error);
    return error != nullptr || text == nullptr ? "" : text;
  }
  // Views into `options`.
  static std::vector<tok_option> InC(const Options& options) {
    std::vector<tok_option> given;
    if (options.strict) given.push_back({"tokamak_strict", "true"});
    if (options.require_kernels) given.push_back({"tokamak_require_kernels", "true"});
    for (const auto& [name, value] : options.named) given.push_back({name.c_str(), value.c_str()});
    return given;
  }

  std::shared_ptr<tok_plan> plan_;
  std::vector<Step> steps_;
};

// A program that can be edited.
class Graph {
 public:
  // A graph of a copy of the module.
  static Result<Graph> Of(const Module& module) {
    tok_graph* graph = nullptr;
    if (tok_error* error = tok_graph_of(module.InC(), &graph)) return Error(error);
    return Graph(graph);
  }
  // A separate graph whose instructions have the same numbers.
  Result<Graph> Copy() const {
    tok_graph* graph = nullptr;
    if (tok_error* error = tok_graph_copy(graph_.get(), &graph)) return Error(error);
    return Graph(graph);
  }

  // ---- the program

  size_t num_computations() const { return tok_graph_num_computations(graph_.get()); }
  size_t entry() const { return tok_graph_entry(graph_.get()); }  // SIZE_MAX: none
  // The instructions of a computation in program order.
  std::vector<Instruction> Instructions(size_t computation) const {
    std::vector<Instruction> all;
    const tok_computation* found = nullptr;
    if (tok_error* error = tok_graph_computation(graph_.get(), computation, &found)) {
      tok_error_free(error);
      return all;
    }
    for (size_t i = 0; i < found->num_instructions; ++i)
      if (Result<Instruction> instr = Get(found->instructions[i]); instr.ok())
        all.push_back(std::move(*instr));
    return all;
  }
  // Those of all computations.
  std::vector<Instruction> Instructions() const {
    std::vector<Instruction> all;
    for (size_t i = 0; i < num_computations(); ++i)
      for (Instruction& instr : Instructions(i)) all.push_back(std::move(instr));
    return all;
  }
  std::vector<Instruction> FindOp(std::string_view op) const {
    std::vector<Instruction> found;
    for (Instruction& instr : Instructions())
      if (instr.op == op) found.push_back(std::move(instr));
    return found;
  }
  Result<Instruction> Get(int64_t number) const {
    const tok_instruction* in_c = nullptr;
    if (tok_error* error = tok_graph_instruction(graph_.get(), number, &in_c)) return Error(error);
    Instruction instr{.number = in_c->number,
                      .name = in_c->name,
                      .op = in_c->op,
                      .type_text = in_c->shape,
                      .shape = {},
                      .computation = in_c->computation,
                      .operands = {in_c->operands, in_c->operands + in_c->num_operands},
                      .users = {in_c->users, in_c->users + in_c->num_users},
                      .called = {in_c->called, in_c->called + in_c->num_called},
                      .scope = in_c->scope,
                      .line = in_c->line};
    instr.shape = {TypeFromName(in_c->type), {in_c->dims, in_c->dims + in_c->rank}};
    return instr;
  }
  Result<Instruction> Find(const std::string& name) const {
    int64_t number = tok_graph_find(graph_.get(), name.c_str());
    if (number >= 0) return Get(number);
    return Error("TK6117", "graph: there is no instruction '" + name + "'");
  }
  // The attributes as a JSON object.
  Result<std::string> Attributes(int64_t number) const {
    const char* json = nullptr;
    if (tok_error* error = tok_graph_attributes(graph_.get(), number, &json)) return Error(error);
    return std::string(json);
  }
  // A shortest path of dependences, both ends included; empty if there is none.
  Result<std::vector<int64_t>> Path(int64_t from, int64_t to) const {
    const int64_t* numbers = nullptr;
    size_t count = 0;
    if (tok_error* error = tok_graph_path(graph_.get(), from, to, &numbers, &count))
      return Error(error);
    return std::vector<int64_t>(numbers, numbers + count);
  }
  // What computes the same as another program, by the same ops; see tok_graph_match.
  Result<std::vector<Match>> FindPattern(const Module& pattern, bool any_shape = true) const {
    const tok_match* found = nullptr;
    size_t count = 0;
    tok_error* error =
        tok_graph_match(graph_.get(), pattern.InC(), any_shape ? 1 : 0, &found, &count);
    if (error != nullptr) return Error(error);
    std::vector<Match> matches;
    for (const tok_match& match : std::span(found, count))
      matches.push_back({{match.results, match.results + match.num_results},
                         {match.variables, match.variables + match.num_variables},
                         {match.inner, match.inner + match.num_inner}});
    return matches;
  }
  // StableHLO ("mlir") or HLO ("hlo") text.
  Result<std::string> Text(const std::string& format = "mlir") const {
    const char* text = nullptr;
    if (tok_error* error = tok_graph_text(graph_.get(), format.c_str(), &text)) return Error(error);
    return std::string(text);
  }
  // Writes a .mlir or .hlo file.
  Status Save(const std::string& path) const {
    Result<std::string> text = Text(path.ends_with(".hlo") ? "hlo" : "mlir");
    if (!text.ok()) return text.error();
    std::ofstream file(path, std::ios::binary);
    file << *text;
    if (!file.flush()) return Error("TK6117", "graph: cannot write " + path);
    return Done{};
  }
  Result<Module> ToModule() const {
    Result<std::string> text = Text("hlo");
    if (!text.ok()) return text.error();
    return Module::FromBytes(*text, "graph");
  }

  // ---- edits

  // Adds the instructions of a program of the operands' types, which nothing uses yet. Returns its
  // results.
  Result<std::vector<int64_t>> Add(const Module& fragment, const std::vector<int64_t>& operands) {
    return AddBeside(fragment, operands, -1);
  }
  // Replaces an instruction by another one of its shape, and removes what only it used.
  Status Replace(int64_t from, int64_t to) {
    return Checked(tok_graph_replace(graph_.get(), from, &to, 1));
  }
  // Replaces an instruction by what a program computes from its operands. Returns the new values,
  // several for a tuple.
  Result<std::vector<int64_t>> Replace(int64_t from, const Module& fragment) {
    Result<Instruction> old = Get(from);
    if (!old.ok()) return old.error();
    return OnCopy([&](Graph& copy) -> Result<std::vector<int64_t>> {
      auto made = copy.AddBeside(fragment, old->operands, from);
      if (!made.ok()) return made;
      Status done = Checked(tok_graph_replace(copy.graph_.get(), from, made->data(), made->size()));
      if (!done.ok()) return done.error();
      return made;
    });
  }
  // Makes all users of an instruction use what a program computes from it.
  Result<std::vector<int64_t>> Insert(int64_t after, const Module& fragment) {
    return OnCopy([&](Graph& copy) -> Result<std::vector<int64_t>> {
      auto made = copy.AddBeside(fragment, {after}, after);
      if (!made.ok()) return made;
      if (made->size() != 1) return Error("TK6117", "insert: the program has several results");
      Status done =
          Checked(tok_graph_replace_uses(copy.graph_.get(), after, made->front(), nullptr, 0));
      if (!done.ok()) return done.error();
      return made;
    });
  }
  Status SetOperand(int64_t user, size_t index, int64_t operand) {
    return Checked(tok_graph_set_operand(graph_.get(), user, index, operand));
  }
  // Removes an instruction that nothing uses.
  Status Remove(int64_t number) { return Checked(tok_graph_remove(graph_.get(), number)); }
  // Moves instructions into a new computation; returns the number of its call.
  Result<int64_t> Outline(const std::vector<int64_t>& numbers, const std::string& name) {
    int64_t call = -1;
    tok_error* error =
        tok_graph_outline(graph_.get(), numbers.data(), numbers.size(), name.c_str(), &call);
    if (error != nullptr) return Error(error);
    return call;
  }
  Status Inline(int64_t call) { return Checked(tok_graph_inline(graph_.get(), call)); }
  // Constrains fusion: "fuse", "never_fuse" or "require_fused"; equal labels are one constraint.
  Status Pin(const std::vector<int64_t>& numbers, const std::string& kind,
             const std::string& label) {
    return Checked(
        tok_graph_pin(graph_.get(), numbers.data(), numbers.size(), kind.c_str(), label.c_str()));
  }

  // ---- the plan

  // Plans the program; the options are those of tok_module_explain: {"target", "h200"},
  // {"tokamak_fusion", "greedy"}.
  Result<Plan> MakePlan(const Options& options = {}) const {
    std::vector<tok_option> given = Plan::InC(options);
    tok_plan* plan = nullptr;
    tok_error* error = tok_graph_plan(graph_.get(), given.data(), given.size(), &plan);
    if (error != nullptr) return Error(error);
    return Plan(plan);
  }

 private:
  explicit Graph(tok_graph* graph) : graph_(graph, tok_graph_free) {}
  static Status Checked(tok_error* error) {
    if (error != nullptr) return Error(error);
    return Done{};
  }
  // Makes an edit of several steps: on a copy, which replaces the graph if all succeed.
  template <typename Edit>
  Result<std::vector<int64_t>> OnCopy(Edit&& edit) {
    Result<Graph> copy = Copy();
    if (!copy.ok()) return copy.error();
    Result<std::vector<int64_t>> made = edit(*copy);
    if (made.ok()) graph_ = std::move(copy->graph_);
    return made;
  }
  Result<std::vector<int64_t>> AddBeside(const Module& fragment,
                                         const std::vector<int64_t>& operands, int64_t beside) {
    tok_fragment in_c = {sizeof(tok_fragment), fragment.InC(), operands.data(), operands.size(),
                         beside};
    const int64_t* results = nullptr;
    size_t count = 0;
    if (tok_error* error = tok_graph_add(graph_.get(), &in_c, &results, &count))
      return Error(error);
    return std::vector<int64_t>(results, results + count);
  }

  std::unique_ptr<tok_graph, void (*)(tok_graph*)> graph_;
};

}  // namespace tokamak
