// Looks at a program and its plan, edits the program, and runs it.
//   graph [cpu|interp]
#include <cmath>
#include <cstdio>

#include "arguments.h"

namespace {

tokamak::Shape Matrix() {
  return {tokamak::Type::kF32, {64, 64}};
}

// tanh(x * y)
tokamak::Result<tokamak::Module> Model() {
  tokamak::Builder b("model");
  tokamak::Value x = b.Parameter(Matrix()), y = b.Parameter(Matrix());
  return b.Build({b.Tanh(b.Dot(x, y))});
}

}  // namespace

int main(int argc, char** argv) {
  auto model = Model();
  if (!model.ok()) return Fail(model.error());
  auto graph = tokamak::Graph::Of(*model);
  if (!graph.ok()) return Fail(graph.error());
  tokamak::Instruction tanh = graph->FindOp("tanh").at(0);
  std::printf("%s = %s %s\n", tanh.name.c_str(), tanh.type_text.c_str(), tanh.op.c_str());
  auto plan = graph->MakePlan({.named = {{"target", "h200"}}});
  if (!plan.ok()) return Fail(plan.error());
  std::printf("%zu steps, %.1f us predicted on an H200\n%s", plan->steps().size(),
              plan->predicted_us(), plan->Why(0).c_str());

  // The logistic function in place of tanh.
  tokamak::Builder b("logistic");
  auto logistic = b.Build({b.Logistic(b.Parameter(Matrix()))});
  if (!logistic.ok()) return Fail(logistic.error());
  auto made = graph->Replace(tanh.number, *logistic);
  if (!made.ok()) return Fail(made.error());
  auto edited = graph->ToModule();
  if (!edited.ok()) return Fail(edited.error());
  auto program = tokamak::Compile(*edited, TargetOf(argc, argv));
  if (!program.ok()) return Fail(program.error());
  auto x = tokamak::Buffer::Make(Matrix());
  if (!x.ok()) return Fail(x.error());
  for (float& value : x->as<float>()) value = 0.125f;
  auto results = program->Run(*x, *x);
  if (!results.ok()) return Fail(results.error());
  float found = (*results)[0].as<float>()[0], expected = 1 / (1 + std::exp(-1.0f));
  std::printf("logistic(1) = %.4f\n", found);
  return std::fabs(found - expected) < 1e-6f ? 0 : 1;
}
