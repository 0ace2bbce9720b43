// Builds a program with the builder API (the softmax of each row, and its entropy), compiles and
// runs it.
//   builder [cpu|interp]
#include <cmath>
#include <cstdio>

#include "arguments.h"

using tokamak::Body;
using tokamak::Type;
using tokamak::Value;

namespace {

constexpr int64_t kRows = 3, kColumns = 5;

// A computation of two scalars, for reduce.
Body& Reducer(tokamak::Builder& b, const std::string& name, Value (*combine)(Body&, Value, Value)) {
  Body& body = b.AddBody(name);
  Value x = body.Parameter({Type::kF32, {}}), y = body.Parameter({Type::kF32, {}});
  body.Return(combine(body, x, y));
  return body;
}

tokamak::Result<tokamak::Module> Softmax() {
  tokamak::Builder b("softmax");
  Body& sum = Reducer(b, "sum", [](Body& f, Value x, Value y) { return f.Add(x, y); });
  Body& largest = Reducer(b, "largest", [](Body& f, Value x, Value y) { return f.Maximum(x, y); });
  tokamak::Shape matrix = {Type::kF32, {kRows, kColumns}};
  Value x = b.Parameter(matrix);
  Value top = b.Reduce(x, b.Scalar(-INFINITY), {1}, largest);
  Value e = b.Exp(b.Subtract(x, b.Broadcast(top, matrix, {0})));
  Value total = b.Reduce(e, b.Scalar(0.0f), {1}, sum);
  Value p = b.Divide(e, b.Broadcast(total, matrix, {0}));
  Value entropy = b.Negate(b.Reduce(b.Multiply(p, b.Log(p)), b.Scalar(0.0f), {1}, sum));
  return b.Build({p, entropy});
}

// An invalid program is an error that names the line here.
int CheckError() {
  tokamak::Builder b("wrong");
  Value x = b.Parameter({Type::kF32, {2}}), y = b.Parameter({Type::kF32, {3}});
  Value z = b.Add(x, y);
  auto module = b.Build({z});
  bool named = !module.ok() && module.error().text().find("builder.cc:") != std::string::npos;
  std::printf("a wrong program: %s\n", module.ok() ? "built" : module.error().code().c_str());
  return named ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  auto module = Softmax();
  if (!module.ok()) return Fail(module.error());
  auto program = tokamak::Compile(*module, TargetOf(argc, argv));
  if (!program.ok()) return Fail(program.error());

  std::vector<float> numbers;
  for (int64_t i = 0; i < kRows * kColumns; ++i)
    numbers.push_back(0.25f * static_cast<float>(i * i % 7));
  // The program reads the vector's memory directly.
  auto x = tokamak::Buffer::Borrow(numbers.data(), numbers.size() * sizeof(float),
                                   {Type::kF32, {kRows, kColumns}});
  if (!x.ok()) return Fail(x.error());
  auto results = program->Run(*x);
  if (!results.ok()) return Fail(results.error());

  auto p = (*results)[0].as<float>(), entropy = (*results)[1].as<float>();
  double worst = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    double total = 0, expected = 0;
    for (int64_t i = 0; i < kColumns; ++i)
      total += std::exp(static_cast<double>(numbers[row * kColumns + i]));
    for (int64_t i = 0; i < kColumns; ++i) {
      double exact = std::exp(static_cast<double>(numbers[row * kColumns + i])) / total;
      worst = std::fmax(worst, std::fabs(p[row * kColumns + i] - exact));
      expected -= exact * std::log(exact);
    }
    worst = std::fmax(worst, std::fabs(entropy[row] - expected));
    std::printf("row %d: entropy %.6f\n", static_cast<int>(row), entropy[row]);
  }
  std::printf("worst error %.1e\n", worst);
  return worst < 1e-6 ? CheckError() : 1;
}
