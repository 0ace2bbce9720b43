// Runs batches through a small network whose weights are constants of the program, reusing the
// result buffers.
//   inference [cpu|interp] [mlp.mlirbc]
#include <cmath>
#include <cstdio>

#include "arguments.h"

int main(int argc, char** argv) {
  auto module = tokamak::Module::FromFile(argc > 2 ? argv[2] : "mlp.mlirbc");
  if (!module.ok()) return Fail(module.error());
  auto program = tokamak::Compile(*module, TargetOf(argc, argv));
  if (!program.ok()) return Fail(program.error());
  auto batch = tokamak::Buffer::Make(program->parameters()[0]);
  auto scores = tokamak::Buffer::Make(program->results()[0]);
  if (!batch.ok() || !scores.ok()) return 1;

  double worst = 0;
  for (int turn = 0; turn < 4; ++turn) {
    auto x = batch->as<float>();
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(static_cast<int>(i + turn) % 13 - 6) / 8;
    auto status = program->RunInto({&*batch, 1}, {&*scores, 1});
    if (!status.ok()) return Fail(status.error());
    auto p = scores->as<float>();
    for (size_t row = 0; row < 32; ++row) {
      double total = p[4 * row] + p[4 * row + 1] + p[4 * row + 2] + p[4 * row + 3];
      worst = std::fmax(worst, std::fabs(total - 1));
    }
    if (turn > 0) continue;
    std::printf("row 0:  %.6f %.6f %.6f %.6f\n", p[0], p[1], p[2], p[3]);
    // JAX's results (make_programs.py).
    const double expected[] = {0.1938164, 0.2302805, 0.2955016, 0.2804016};
    for (int i = 0; i < 4; ++i) worst = std::fmax(worst, std::fabs(p[i] - expected[i]));
  }
  std::printf("worst error %.1e; %s\n", worst, program->info().c_str());
  return worst < 1e-5 ? 0 : 1;
}
