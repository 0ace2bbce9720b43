// The C++ graph API: queries, every edit, plans, and edits that are rejected.
#include <cmath>
#include <cstdio>
#include <string>

#include <tokamak/tokamak.h>

namespace {

using tokamak::Graph;
using tokamak::Instruction;
using tokamak::Module;
using tokamak::Shape;
using tokamak::Type;

int failed = 0;

void Check(bool holds, const std::string& what) {
  if (holds) return;
  ++failed;
  std::printf("failed: %s\n", what.c_str());
}

template <typename T>
void ExpectError(const tokamak::Result<T>& result, const std::string& words) {
  Check(!result.ok() && result.error().text().find(words) != std::string::npos,
        "an error with '" + words + "', got " + (result.ok() ? "none" : result.error().text()));
}

Shape Vector(int64_t size = 4) {
  return {Type::kF32, {size}};
}

// (x + y) * tanh(x + y)
Module Program() {
  tokamak::Builder b("m");
  tokamak::Value sum = b.Add(b.Parameter(Vector()), b.Parameter(Vector()));
  return *b.Build({b.Multiply(sum, b.Tanh(sum))});
}

Module Unary(tokamak::Value (tokamak::Body::*op)(tokamak::Value, tokamak::Where),
             const Shape& shape = Vector()) {
  tokamak::Builder b("f");
  return *b.Build({(b.*op)(b.Parameter(shape), tokamak::Where::Here())});
}

float Run(const Graph& graph, float x, float y) {
  auto module = graph.ToModule();
  auto program = tokamak::Compile(*module, tokamak::Target::kInterpreter);
  auto a = tokamak::Buffer::From<float>({x, x, x, x}, {4});
  auto b = tokamak::Buffer::From<float>({y, y, y, y}, {4});
  if (!program.ok()) return NAN;
  auto results = program->Run(*a, *b);
  return results.ok() ? (*results)[0].as<float>()[0] : NAN;
}

void Queries(const Graph& graph) {
  Instruction tanh = graph.FindOp("tanh").at(0), add = graph.FindOp("add").at(0);
  Check(graph.Instructions().size() == 5, "5 instructions");
  Check(tanh.operands == std::vector<int64_t>{add.number}, "tanh uses add");
  Check(add.users.size() == 2, "add has 2 users");
  Check(tanh.shape == Vector() && tanh.type_text == "f32[4]", "tanh is f32[4]");
  Check(tanh.line.find("graph_edits.cc:") != std::string::npos, "tanh has a line");
  Check(graph.Find(tanh.name)->number == tanh.number, "names find");
  ExpectError(graph.Find("none"), "no instruction 'none'");
  ExpectError(graph.Get(99), "no instruction number 99");
  auto path = graph.Path(graph.FindOp("parameter").at(0).number, tanh.number);
  Check(path.ok() && path->size() == 3, "a path of 3");
  auto matches = graph.FindPattern(Unary(&tokamak::Body::Tanh, Vector(9)));
  Check(matches.ok() && matches->size() == 1 && matches->at(0).results.at(0) == tanh.number &&
            matches->at(0).variables.at(0) == add.number,
        "a pattern is found");
  Check(graph.FindPattern(Unary(&tokamak::Body::Tanh, Vector(9)), false)->empty(), "other shape");
  Check(graph.Path(tanh.number, add.number)->empty(), "no path backwards");
}

void Plans(Graph& graph) {
  auto plan = graph.MakePlan({.named = {{"target", "h200"}}});
  Check(plan.ok() && plan->steps().size() == 1, "one kernel");
  int64_t tanh = graph.FindOp("tanh").at(0).number, add = graph.FindOp("add").at(0).number;
  Check(plan->StepsOf(tanh) == std::vector<size_t>{0}, "it computes tanh");
  Check(plan->Boundary(add, tanh).empty() && !plan->Why(0).empty(), "no boundary");
  auto apart = graph.MakePlan({.named = {{"target", "h200"}, {"tokamak_fusion", "none"}}});
  Check(apart.ok() && apart->steps().size() == 3, "3 kernels");
  Check(!apart->Boundary(add, tanh).empty(), "a boundary");
  Check(!plan->Diff(*apart).empty(), "a difference");
  Check(plan->Json().find("\"report\"") != std::string::npos, "JSON");
  Check(plan->Explain({.named = {{"dot", "true"}}})->starts_with("digraph"), "Graphviz");
  Check(plan->Why(7).empty(), "no step 7");
  ExpectError(plan->Compile(), "not a device");
  ExpectError(graph.MakePlan({.named = {{"tokamak_fusin", "none"}}}), "tokamak_fusion");
}

void Edits(Graph& graph) {
  int64_t tanh = graph.FindOp("tanh").at(0).number, add = graph.FindOp("add").at(0).number;
  std::string before = *graph.Text("hlo");
  ExpectError(graph.Replace(tanh, Unary(&tokamak::Body::Negate, Vector(5))), "f32[5]");
  ExpectError(graph.Remove(add), "is used by");
  ExpectError(graph.Replace(add, tanh), "depends on");
  ExpectError(graph.SetOperand(add, 0, tanh), "depend on itself");
  ExpectError(graph.SetOperand(add, 7, tanh), "no operand 7");
  ExpectError(graph.Outline({add, graph.FindOp("multiply").at(0).number}, "f"), "not among");
  ExpectError(graph.Inline(tanh), "not a call");
  ExpectError(graph.Pin({tanh}, "fused", "a"), "none of never_fuse");
  Check(*graph.Text("hlo") == before, "failed edits change nothing");

  Check(graph.Replace(tanh, Unary(&tokamak::Body::Negate)).ok(), "replace");
  Check(Run(graph, 1, 2) == -9, "3 * -3");
  ExpectError(graph.Get(tanh), "was removed");
  Check(graph.Insert(add, Unary(&tokamak::Body::Abs)).ok(), "insert");
  Check(Run(graph, -1, -2) == -9, "|-3| * -|-3|");
  auto copy = graph.Copy();
  int64_t negate = graph.FindOp("negate").at(0).number;
  int64_t abs = graph.FindOp("abs").at(0).number;
  auto call = graph.Outline({abs, negate}, "part");
  Check(call.ok() && graph.num_computations() == 2, "outline");
  Check(Run(graph, -1, -2) == -9 && copy->num_computations() == 1, "the copy stays");
  Check(graph.Inline(*call).ok() && graph.num_computations() == 1, "inline");
  Check(Run(graph, -1, -2) == -9, "inlined");
  auto added = graph.Add(Unary(&tokamak::Body::Abs), {add});
  Check(added.ok() && graph.Remove(added->at(0)).ok(), "add and remove");
  Check(graph.Pin({add}, "never_fuse", "a").ok(), "pin");
  auto plan = graph.MakePlan({.named = {{"target", "h200"}}});
  Check(plan.ok() && plan->steps().size() == 2, "2 kernels");
  Check(graph.Attributes(add)->find("tokamak.never_fuse") != std::string::npos, "attributes");
}

}  // namespace

int main() {
  auto graph = Graph::Of(Program());
  if (!graph.ok()) return 1;
  Queries(*graph);
  Plans(*graph);
  Edits(*graph);
  std::printf("%d wrong\n", failed);
  return failed == 0 ? 0 : 1;
}
