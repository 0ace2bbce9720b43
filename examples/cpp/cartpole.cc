// Runs CartPole: 100 steps of 8 poles, each pushed in the direction of a weighted sum of its state.
//   cartpole [cpu|interp] [cartpole.mlir]
#include <cmath>
#include <cstdio>

#include "arguments.h"

namespace {

constexpr int kPoles = 8, kSteps = 100;

// The reference in plain C++: one pole, in double.
int Simulate(double* s, const float* w) {
  int stood = 0;
  bool standing = true;
  for (int i = 0; i < kSteps; ++i) {
    double force = s[0] * w[0] + s[1] * w[1] + s[2] * w[2] + s[3] * w[3] > 0 ? 10 : -10;
    double sine = std::sin(s[2]), cosine = std::cos(s[2]);
    double push = (force + 0.05 * s[3] * s[3] * sine) / 1.1;
    double turn = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3 - 0.1 * cosine * cosine / 1.1));
    double pull = push - 0.05 * turn * cosine / 1.1;
    s[0] += 0.02 * s[1];
    s[1] += 0.02 * pull;
    s[2] += 0.02 * s[3];
    s[3] += 0.02 * turn;
    standing = standing && std::fabs(s[0]) < 2.4 && std::fabs(s[2]) < 0.2095;
    stood += standing ? 1 : 0;
  }
  return stood;
}

}  // namespace

int main(int argc, char** argv) {
  auto module = tokamak::Module::FromFile(argc > 2 ? argv[2] : "cartpole.mlir");
  if (!module.ok()) return Fail(module.error());
  auto program = tokamak::Compile(*module, TargetOf(argc, argv));
  if (!program.ok()) return Fail(program.error());
  std::printf("%s takes", program->name().c_str());
  for (const auto& shape : program->parameters()) std::printf(" %s", ToString(shape).c_str());
  std::printf(" and gives");
  for (const auto& shape : program->results()) std::printf(" %s", ToString(shape).c_str());
  std::printf("\n");

  std::vector<float> states;
  for (int i = 0; i < kPoles * 4; ++i) states.push_back(0.01f * static_cast<float>(i % 9 - 4));
  auto state = tokamak::Buffer::From<float>(states, {kPoles, 4});
  auto weights = tokamak::Buffer::From<float>({0.1f, 0.3f, 1.0f, 0.5f}, {4});
  if (!state.ok() || !weights.ok()) return 1;
  auto results = program->Run(*state, *weights);
  if (!results.ok()) return Fail(results.error());

  auto last = (*results)[0].as<float>();
  auto stood = (*results)[1].as<int32_t>();
  int fallen = 0, wrong = 0;
  for (int i = 0; i < kPoles; ++i) {
    double exact[4] = {states[4 * i], states[4 * i + 1], states[4 * i + 2], states[4 * i + 3]};
    int expected = Simulate(exact, weights->as<float>().data());
    bool close = std::fabs(last[4 * i] - exact[0]) < 0.02 && stood[i] == expected;
    std::printf("pole %d stood %d steps, at %.4f\n", i, stood[i], last[4 * i]);
    fallen += stood[i] < kSteps ? 1 : 0;
    wrong += close ? 0 : 1;
  }
  std::printf("%d of %d fell, %d unlike the simulation in C++\n", fallen, kPoles, wrong);
  // An argument of the wrong shape is rejected.
  bool rejected = !program->Run(*weights, *state).ok();
  return wrong == 0 && rejected ? 0 : 1;
}
