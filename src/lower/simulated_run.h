#pragma once

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "kernel/simulate.h"
#include "lower/lower.h"

// For tests: runs a lowered program with its kernels in the simulator.

namespace tokamak {

class SimulatedKernel final : public KernelCode {
 public:
  explicit SimulatedKernel(const Kernel& kernel) : kernel_(kernel) {}
  void Run(void* const* arguments, const int64_t*, int64_t, int64_t) const override {
    std::vector<SimArgument> given;
    for (size_t i = 0; i < kernel_.ArgumentCount(); ++i)
      given.push_back({arguments[i], kernel_.arrays[i].size});
    EXPECT_TRUE(SimulateKernel(kernel_, given, {}).ok());
  }

 private:
  const Kernel& kernel_;
};

// `arrays`: those of the parameters, then those of the results.
inline void RunSimulated(const LoweredProgram& program, const std::vector<float*>& arrays) {
  std::vector<std::byte> arena(static_cast<size_t>(program.arena_bytes));
  std::vector<std::byte*> memories = {arena.data()};
  for (float* array : arrays) memories.push_back(reinterpret_cast<std::byte*>(array));
  std::vector<std::unique_ptr<SimulatedKernel>> codes;
  std::vector<const KernelCode*> kernels;
  for (const Kernel& kernel : program.kernels) {
    codes.push_back(std::make_unique<SimulatedKernel>(kernel));
    kernels.push_back(codes.back().get());
  }
  StepContext context;
  context.memories = memories;
  context.kernels = kernels;
  EXPECT_TRUE(RunSteps(program.steps, context).ok());
}

// For a program with one parameter and one result, both f32.
inline std::vector<float> RunSimulated(const LoweredProgram& program, std::vector<float> input,
                                       size_t results) {
  std::vector<float> output(results);
  RunSimulated(program, {input.data(), output.data()});
  return output;
}

}  // namespace tokamak
