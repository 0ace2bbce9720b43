// Builds random contractions with every schedule that their kernels have, as machine code of the
// host and for the simulated GPU, and compares the results with those of the interpreter. Values
// are small integers, so that sums are exact in every order.

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "driver/compile/backend.h"
#include "driver/compile/compilation.h"
#include "driver/run/make_executable.h"
#include "text/read.h"

namespace tokamak {
namespace {

// What is fused with the dot.
enum class Around : uint8_t {
  kNothing,
  kElementwise,
  kRows,   // each row of the results minus its maximum
  kChain,  // each row of lhs minus its maximum, before the dot
};

struct RandomDot {
  std::string type;
  int64_t batch, m, n, k;
  bool lhs_transposed, rhs_transposed;
  Around around;

  size_t LhsCount() const { return static_cast<size_t>(batch * m * k); }
  size_t RhsCount() const { return static_cast<size_t>(batch * k * n); }
  size_t ResultCount() const { return static_cast<size_t>(batch * m * n); }

  std::string Array(int64_t rows, int64_t columns) const {
    return fmt::format("{}[{},{},{}]", type, batch, rows, columns);
  }

  // The lines of an HLO computation that subtract from each row of `from` its maximum.
  static void Subtract(std::vector<std::string>& lines, std::string_view from,
                       const std::string& array, const std::string& rows) {
    lines.push_back(
        fmt::format("most_{0} = {1} reduce({0}, low), dimensions={{2}}, to_apply=max", from, rows));
    lines.push_back(
        fmt::format("wide_{0} = {1} broadcast(most_{0}), dimensions={{0,1}}", from, array));
    lines.push_back(fmt::format("less_{0} = {1} subtract({0}, wide_{0})", from, array));
  }

  std::string Text() const {
    std::string lhs = lhs_transposed ? Array(k, m) : Array(m, k),
                rhs = rhs_transposed ? Array(n, k) : Array(k, n), out = Array(m, n),
                rows = fmt::format("{}[{},{}]", type, batch, m);
    std::vector<std::string> lines = {"x = " + lhs + " parameter(0)",
                                      "w = " + rhs + " parameter(1)",
                                      "low = " + type + "[] constant(-99)"};
    std::string left = "x";
    if (around == Around::kElementwise) {
      lines.push_back("left = " + lhs + " negate(x)");
      left = "left";
    } else if (around == Around::kChain) {
      Subtract(lines, "x", lhs, rows);
      left = "less_x";
    }
    lines.push_back(
        fmt::format("dot = {} dot({}, w), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, "
                    "lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}",
                    out, left, lhs_transposed ? 1 : 2, rhs_transposed ? 2 : 1));
    if (around == Around::kElementwise) lines.push_back("y = " + out + " add(dot, dot)");
    if (around == Around::kRows) Subtract(lines, "dot", out, rows);
    lines.back() = "ROOT " + lines.back();
    std::string text = fmt::format(
        "HloModule m\nmax {{\n  a = {0}[] parameter(0)\n  b = {0}[] parameter(1)\n"
        "  ROOT c = {0}[] maximum(a, b)\n}}\nENTRY main {{\n",
        type);
    for (const std::string& line : lines) text += "  " + line + "\n";
    return text + "}\n";
  }
};

int64_t BytesOfType(const std::string& type) {
  return type == "bf16" ? 2 : type == "f64" ? 8 : 4;
}

std::vector<uint8_t> Encoded(const std::string& type, size_t count, std::mt19937& random) {
  constexpr int kValues[] = {-2, -1, 1, 2};
  std::vector<uint8_t> bytes;
  auto add = [&](auto value) {
    std::array<uint8_t, sizeof value> raw;
    std::memcpy(raw.data(), &value, sizeof value);
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  };
  for (size_t i = 0; i < count; ++i) {
    int value = kValues[random() % std::size(kValues)];
    if (type == "f64")
      add(static_cast<double>(value));
    else if (type == "s32")
      add(static_cast<int32_t>(value));
    else if (type == "f32")
      add(static_cast<float>(value));
    else
      add(static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16));
  }
  return bytes;
}

std::vector<double> Decoded(const std::string& type, const std::vector<uint8_t>& bytes) {
  std::vector<double> values;
  for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(BytesOfType(type))) {
    auto read = [&](auto value) {
      std::memcpy(&value, &bytes[at], sizeof value);
      return value;
    };
    values.push_back(type == "f64"   ? read(double{})
                     : type == "f32" ? static_cast<double>(read(float{}))
                     : type == "s32" ? static_cast<double>(read(int32_t{}))
                                     : static_cast<double>(std::bit_cast<float>(
                                           static_cast<uint32_t>(read(uint16_t{})) << 16)));
  }
  return values;
}

RandomDot Draw(std::mt19937& random, int number) {
  auto from = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  constexpr std::string_view kTypes[] = {"f32", "bf16", "f32", "f64", "f32", "s32"};
  RandomDot of{.type = std::string(kTypes[number % 6]),
               .batch = number % 4 == 3 ? 3 : 1,
               .m = from(17, 45),
               .n = from(9, 40),
               .k = from(20, 70),
               .lhs_transposed = random() % 2 == 0,
               .rhs_transposed = random() % 2 == 0,
               .around = static_cast<Around>(number % 3)};
  // Intermediate values of bf16 may be rounded in another order.
  if (of.type == "bf16" && of.around == Around::kRows) of.around = Around::kElementwise;
  if (number % 6 == 4) {
    of.around = Around::kChain;
    of.lhs_transposed = false;
  }
  return of;
}

struct Ran {
  std::shared_ptr<const Executable> executable;
  std::vector<double> values;
};

class ScheduledContractions : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (Result<const BackendInfo*> backend = FindBackend(GetParam()); !backend.ok())
      GTEST_SKIP() << backend.error().message;
    // Kernels compute all dots.
    setenv("TOKAMAK_BLAS", "off", 1);
  }
  void TearDown() override { unsetenv("TOKAMAK_BLAS"); }

  // Compiles and runs a program on the arrays of `seed`.
  static Result<Ran> RunDot(const RandomDot& of, const CompileOptions& options, uint32_t seed) {
    TOK_TRY(std::unique_ptr<Module> module, ReadHloText(of.Text(), "dot.hlo"));
    Ran ran;
    TOK_TRY(ran.executable, CompileAndLoad(std::move(module), options));
    std::mt19937 random(seed);
    std::vector<uint8_t> x = Encoded(of.type, of.LhsCount(), random),
                         w = Encoded(of.type, of.RhsCount(), random),
                         y(of.ResultCount() * static_cast<size_t>(BytesOfType(of.type)));
    std::array<const void*, 2> inputs{x.data(), w.data()};
    std::array<void*, 1> outputs{y.data()};
    TOK_RETURN_IF_ERROR(ran.executable->Run(inputs, outputs, {}));
    ran.values = Decoded(of.type, y);
    return ran;
  }
};

TEST_P(ScheduledContractions, AllSchedulesComputeTheSame) {
  std::mt19937 random(28);
  size_t built = 0;
  for (int number = 0; number < 12; ++number) {
    RandomDot of = Draw(random, number);
    SCOPED_TRACE(of.Text());
    CompileOptions reference, options;
    reference.backend = "interp";
    options.backend = GetParam();
    Result<Ran> expected = RunDot(of, reference, 1), preferred = RunDot(of, options, 1);
    ASSERT_TRUE(expected.ok() && preferred.ok());
    EXPECT_EQ(preferred.value().values, expected.value().values);
    const Compilation& made = preferred.value().executable->compilation();
    for (size_t i = 0; i < made.program.kernels.size(); ++i) {
      const KernelSource& source = made.program.sources[i];
      if (!source.schedule) continue;
      for (const Schedule& schedule : Schedules(source.region, source.kind, made.target.machine)) {
        SCOPED_TRACE(ToString(schedule));
        options.schedules.forced = {{made.program.kernels[i].name, schedule}};
        Result<Ran> ran = RunDot(of, options, 1);
        ASSERT_TRUE(ran.ok()) << Render(ran.error());
        const auto& program = ran.value().executable->compilation().program;
        size_t kernel = 0;
        while (program.kernels[kernel].name != made.program.kernels[i].name) ++kernel;
        EXPECT_EQ(program.sources[kernel].schedule, schedule);
        EXPECT_EQ(ran.value().values, expected.value().values);
        ++built;
      }
      options.schedules.forced.clear();
    }
  }
  EXPECT_GE(built, 60u);
}

TEST_P(ScheduledContractions, TheCheapestSchedulesComputeTheSame) {
  std::mt19937 random(4);
  for (int number = 0; number < 4; ++number) {
    RandomDot of = Draw(random, number);
    SCOPED_TRACE(of.Text());
    CompileOptions reference, options;
    reference.backend = "interp";
    options.backend = GetParam();
    Result<Ran> expected = RunDot(of, reference, 1), preferred = RunDot(of, options, 1);
    options.schedules.mode = ScheduleMode::kCheapest;
    Result<Ran> cheapest = RunDot(of, options, 1);
    ASSERT_TRUE(expected.ok() && preferred.ok() && cheapest.ok());
    EXPECT_EQ(cheapest.value().values, expected.value().values);
    EXPECT_LE(cheapest.value().executable->compilation().predicted_us,
              preferred.value().executable->compilation().predicted_us);
  }
}

TEST_P(ScheduledContractions, AForcedScheduleThatDoesNotFitIsAnError) {
  RandomDot of{"f32", 1, 32, 32, 32, false, false, Around::kNothing};
  CompileOptions options;
  options.backend = GetParam();
  auto message = [&](std::string_view text) {
    options.schedules = {};
    Status read = AddScheduleOption(options.schedules, text);
    if (!read.ok()) return read.error().message;
    Result<Ran> ran = RunDot(of, options, 1);
    return ran.ok() ? "" : ran.error().message;
  };
  EXPECT_NE(message("dot=contract tile=7x7x7").find("does not fit kernel 'dot': "),
            std::string::npos);
  EXPECT_NE(
      message("dots=contract tile=7x7x7").find("there is no kernel 'dots'; did you mean 'dot'"),
      std::string::npos);
  EXPECT_NE(message("contract").find("expected 'cheapest', 'preferred' or KERNEL=SCHEDULE"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Backends, ScheduledContractions, ::testing::Values("cpu", "sim-cuda"));

}  // namespace
}  // namespace tokamak
