// tok_gpu_bundle OUT FILE...: writes the input of tok_gpu_kernels: the CUDA C++ of the programs'
// kernels, their steps, random inputs, and the results of the simulator. The device must reproduce
// them bit by bit, or approximately where tensor cores accumulate or the device approximates. A
// file with a line `LARGE: softmax 16384 4096` generates its inputs on the device's machine and is
// compared with a computation there. Programs that need the host are skipped.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "backend/cuda/cuda_text.h"
#include "driver/compile/compilation.h"
#include "driver/run/kernel_codes.h"
#include "interp/arguments.h"
#include "interp/array_bytes.h"
#include "interp/interp.h"
#include "ir/clone.h"
#include "kernel/verify.h"
#include "lower/lower.h"
#include "text/load.h"

namespace tokamak {
namespace {

constexpr uint64_t kSeed = 7;
// limit per simulated program (chosen: keeps the simulation short)
constexpr int64_t kMaxBytes = 4 << 20;

class Bundle {
 public:
  explicit Bundle(const std::string& folder) : folder_(folder) {
    std::filesystem::create_directories(folder + "/kernels");
    data_.open(folder + "/data.bin", std::ios::binary);
  }
  ~Bundle() { std::ofstream(folder_ + "/manifest.txt") << manifest_; }

  // Returns the reason why the program is not in the bundle.
  Result<std::string> Add(const Module& given, const std::string& name, const std::string& large,
                          bool exact) {
    TOK_TRY(Target target, TargetNamed("h200"));
    target.libraries = LibraryUse::kNone;
    CompileOptions options;
    options.check_memory = false;
    TOK_TRY(std::shared_ptr<const Compilation> made, Compile(CloneModule(given), target, options));
    if (!made->why_interpreted.empty()) return made->why_interpreted;
    const Module& module = *made->module;
    const LoweredProgram& program = made->program;
    for (const RunStep& step : program.steps)
      if (step.kind != StepKind::kLaunch && step.kind != StepKind::kHorizontal &&
          step.kind != StepKind::kCopy)
        return std::string("it has other steps than kernels");
    if (program.launches == 0) return std::string("it has no kernels");
    text_ = fmt::format("program {}\n", name);
    TOK_TRY(std::string why,
            large.empty() ? AddSmall(module, program, exact) : AddLarge(module, program, large));
    if (!why.empty()) return why;
    for (const RunStep& step : program.steps) TOK_RETURN_IF_ERROR(AddStep(program, step, name));
    manifest_ += text_;
    return std::string();
  }

  // Whether approximate hardware units compute it, accurate except for the last bits.
  static bool HasApproximation(const Kernel& kernel) {
    return std::ranges::any_of(kernel.nodes, [](const ScalarNode& node) {
      return node.prim == Prim::kExp2 || node.prim == Prim::kInverse;
    });
  }

 private:
  // Dot products of integers are exact in any order: programs of those, in files that say EXACT,
  // are still compared bit by bit.
  static bool HasTensorProduct(const Kernel& kernel, const StmtList& block) {
    return std::any_of(block.begin(), block.end(), [&](const Stmt& stmt) {
      const MatrixMultiply& product = stmt.matmul;
      return (stmt.kind == StmtKind::kMatMul && (product.IsBlockWide() || product.async) &&
              (product.tf32 || BytesOf(kernel.array(product.lhs).type) < 4)) ||
             HasTensorProduct(kernel, stmt.body) || HasTensorProduct(kernel, stmt.else_body);
    });
  }

  static std::string SliceText(const BufferSlice& slice) {
    return fmt::format(" {}+{}", slice.memory, slice.offset);
  }

  Status AddStep(const LoweredProgram& program, const RunStep& step, const std::string& name) {
    if (step.kind == StepKind::kCopy) {
      text_ += fmt::format("copy {}{}{}\n", step.bytes, SliceText(step.slices[0]),
                           SliceText(step.slices[1]));
      return Ok();
    }
    if (step.kind == StepKind::kHorizontal) return AddHorizontal(program, step, name);
    const Kernel& kernel = program.kernels[step.target];
    TOK_RETURN_IF_ERROR(VerifyKernel(kernel));
    TOK_TRY(cuda::CudaSource source, cuda::CudaText(kernel));
    AddLaunch("launch", fmt::format("{}_{}", name, step.target), source, step.grid, step.slices);
    return Ok();
  }

  // Adds the pointers of all its kernels, as a parameter or in memory.
  Status AddHorizontal(const LoweredProgram& program, const RunStep& step,
                       const std::string& name) {
    std::vector<cuda::HorizontalKernel> entries;
    std::vector<BufferSlice> slices;
    int64_t grid = 0;
    for (const RunStep& launch : step.blocks[0]) {
      const Kernel& kernel = program.kernels[launch.target];
      TOK_RETURN_IF_ERROR(VerifyKernel(kernel));
      entries.push_back({&kernel, launch.grid});
      grid += launch.grid;
      slices.insert(slices.end(), launch.slices.begin(), launch.slices.end());
    }
    std::string own = fmt::format("{}_horizontal_{}", name, step.blocks[0][0].target);
    TOK_TRY(cuda::HorizontalSource made, cuda::HorizontalText(own, entries));
    bool by_value = made.table == cuda::PointerTable::kParameter;
    AddLaunch(by_value ? "pack-parameter" : "pack-memory", own, made.source, grid, slices);
    return Ok();
  }

  void AddLaunch(std::string_view word, const std::string& name, const cuda::CudaSource& source,
                 int64_t grid, const std::vector<BufferSlice>& slices) {
    std::string file = fmt::format("kernels/{}.cu", name);
    std::ofstream(folder_ + "/" + file) << source.text;
    text_ +=
        fmt::format("{} {} {} {} {} {} {} {} {}", word, file, source.name, grid, source.threads[0],
                    source.threads[1], source.threads[2], source.dynamic_bytes, slices.size());
    for (const BufferSlice& slice : slices) text_ += SliceText(slice);
    text_ += "\n";
    for (const cuda::TensorMapForm& map : source.maps) {
      cuda::TensorMapArguments a = cuda::ArgumentsOf(map);
      text_ +=
          fmt::format("map {} {} {} {} {}", map.argument, a.type, a.swizzle, a.promotion, a.rank);
      for (size_t i = 0; i < a.rank; ++i)
        text_ += fmt::format(" {} {} {} {}", a.sizes[i], a.strides[i], a.boxes[i], a.steps[i]);
      text_ += "\n";
    }
  }

  size_t Keep(const std::vector<std::byte>& bytes) {
    size_t at = size_;
    data_.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
    size_ += bytes.size();
    return at;
  }

  Result<std::string> AddLarge(const Module& module, const LoweredProgram& program,
                               const std::string& large) {
    const Computation& entry = *module.entry();
    int64_t traffic = 0, memory = 1;
    if (!program.constants.empty()) return std::string("it has constants in memory");
    text_ += fmt::format("memory {}\n", program.arena_bytes);
    std::string draws;
    for (const Instr* parameter : entry.parameters()) {
      const Shape& shape = parameter->shape();
      text_ += fmt::format("memory {}\n", shape.ByteSize());
      draws +=
          fmt::format("draw {} {} {}\n", memory++, shape.ElementCount(), HloName(shape.type()));
      traffic += shape.ByteSize();
    }
    const Shape& result = entry.root()->shape();
    if (!result.IsArray()) return std::string("its result is no array");
    text_ += fmt::format("memory {}\n", result.ByteSize()) + draws;
    text_ += fmt::format("expect {} {} 0 {}\n", memory, result.ByteSize(), HloName(result.type()));
    text_ += fmt::format("reference {}\ntraffic {}\n", large, traffic + result.ByteSize());
    return std::string();
  }

  // Runs the program on the simulator.
  Result<std::string> AddSmall(const Module& module, const LoweredProgram& program, bool exact) {
    const Computation& entry = *module.entry();
    std::vector<std::vector<std::byte>> memories(1);
    memories[0].resize(static_cast<size_t>(program.arena_bytes));
    int64_t total = program.arena_bytes;
    auto add = [&](const Shape& shape) {
      memories.emplace_back(static_cast<size_t>(shape.ByteSize()));
      total += shape.ByteSize();
    };
    TOK_TRY(std::vector<Value> arguments, DrawArguments(kSeed, entry));
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Shape& shape = entry.parameter(i)->shape();
      if (!shape.IsArray()) return std::string("it takes tuples");
      if (shape.ByteSize() > kMaxBytes) return std::string("it is too large");
      add(shape);
      StoreBytes(arguments[i], memories.back().data());
    }
    std::vector<Shape> results = LeavesOf(entry.root()->shape());
    for (const Shape& shape : results) {
      if (!shape.IsArray()) return std::string("it has results that are no arrays");
      add(shape);
    }
    for (const Instr* constant : program.constants) {
      add(constant->shape());
      TOK_TRY(Value value, ValueFromLiteral(constant->attrs<ConstantAttrs>().literal));
      StoreBytes(value.WithShape(constant->shape().WithoutLayout()), memories.back().data());
    }
    if (total > kMaxBytes) return std::string("it is too large");
    size_t first_result = 1 + arguments.size(), last_result = first_result + results.size();
    text_ += fmt::format("memory {}\n", program.arena_bytes);
    for (size_t i = 1; i < memories.size(); ++i) {
      text_ += fmt::format("memory {}\n", memories[i].size());
      if (i < first_result || i >= last_result)
        text_ += fmt::format("upload {} {} {}\n", i, memories[i].size(), Keep(memories[i]));
    }
    TOK_RETURN_IF_ERROR(Simulate(program, memories));
    bool near =
        !exact &&
        std::any_of(program.kernels.begin(), program.kernels.end(), [](const Kernel& kernel) {
          return HasTensorProduct(kernel, kernel.body) || HasApproximation(kernel);
        });
    for (size_t i = 0; i < results.size(); ++i) {
      const std::vector<std::byte>& bytes = memories[first_result + i];
      text_ += fmt::format("expect {} {} {} {}{}\n", first_result + i, bytes.size(), Keep(bytes),
                           HloName(results[i].type()), near ? " near" : "");
    }
    return std::string();
  }

  static Status Simulate(const LoweredProgram& program,
                         std::vector<std::vector<std::byte>>& memories) {
    TOK_TRY(KernelCodes codes, MakeCodes(program.kernels, KernelBackend::kGpuSimulator));
    std::vector<const KernelCode*> kernels;
    for (const auto& code : codes.all) kernels.push_back(code.get());
    std::vector<std::byte*> slices;
    for (std::vector<std::byte>& memory : memories) slices.push_back(memory.data());
    StepContext context;
    context.memories = slices;
    context.kernels = kernels;
    context.horizontal = codes.horizontal.get();
    // The min_chunk of a launch is its whole grid.
    TOK_RETURN_IF_ERROR(RunSteps(program.steps, context));
    return codes.TakeSimulationError();
  }

  std::string folder_, manifest_, text_;
  std::ofstream data_;
  size_t size_ = 0;
};

// The text after a keyword on its own line; nullopt if the file has none.
std::optional<std::string> Marked(const LoadedFile& file, std::string_view word) {
  std::istringstream in{std::string(file.source())};
  for (std::string line; std::getline(in, line);)
    if (size_t at = line.find(word); at != std::string::npos) return line.substr(at + word.size());
  return std::nullopt;
}

int Main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "tok_gpu_bundle OUT FILE...\n");
    return 64;
  }
  Bundle bundle(argv[1]);
  int added = 0, left_out = 0, failed = 0;
  for (int i = 2; i < argc; ++i) {
    Result<LoadedFile> file = LoadFile(argv[i], Verification::kYes);
    if (!file.ok()) {
      fmt::print("{}\n", Render(file.error()));
      ++failed;
      continue;
    }
    std::string name = std::filesystem::path(argv[i]).stem();
    std::string large = Marked(file.value(), "LARGE: ").value_or("");
    bool exact = Marked(file.value(), "// EXACT").has_value();
    for (auto& program : file.value().programs) {
      if (!program.ok() || program.value()->entry() == nullptr) continue;
      Result<std::string> why = bundle.Add(*program.value(), name, large, exact);
      if (!why.ok()) {
        fmt::print("{}: {}\n", argv[i], Render(why.error()));
        ++failed;
      } else {
        ++(why.value().empty() ? added : left_out);
      }
      break;
    }
  }
  fmt::print("{} programs, {} left out, {} failed\n", added, left_out, failed);
  return failed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace tokamak

int main(int argc, char** argv) {
  return tokamak::Main(argc, argv);
}
