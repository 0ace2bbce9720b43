#include "driver/plugins/region_text.h"

#include <cctype>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "driver/plugins/paste.h"
#include "explain/decision.h"
#include "gen/element.h"
#include "kernel/parse.h"
#include "kernel/verify.h"
#include "text/write.h"

namespace tokamak {
namespace {

// The trip count of the kernel's grid loop, which must be its whole body; 0 if there is none.
int64_t GridOfText(const Kernel& kernel) {
  if (kernel.body.size() != 1 || kernel.body[0].kind != StmtKind::kFor) return 0;
  const Loop& loop = kernel.loop(kernel.body[0].loop);
  if (loop.role != LoopRole::kGrid || !kernel.IsConstant(loop.extent)) return 0;
  // A second grid loop would need extents of the launch.
  const StmtList& body = kernel.body[0].body;
  bool nests = body.size() == 1 && body[0].kind == StmtKind::kFor &&
               kernel.loop(body[0].loop).role == LoopRole::kGrid;
  const ScalarNode& extent = kernel.node(loop.extent);
  return nests ? 0 : IntOfBits(extent.type, extent.bits);
}

// The array that the kernel declares for an argument, as ElementEmitter does (gen/element.h).
struct ArgumentArray {
  std::string name;
  ScalarType type{};
  int64_t size = 0;
};
ArgumentArray ArrayOf(const KernelArgument& argument) {
  const Shape& shape = ResultShapesOf(argument.instr->shape())[argument.result_index];
  return {NameOfArgument(*argument.instr, argument.result_index), StorageType(shape.type()),
          shape.ElementCount() * (IsComplex(shape.type()) ? 2 : 1)};
}

// Why the declared arguments are not those of the region; empty if they are.
std::string WhyOtherArguments(const Kernel& kernel, const std::vector<KernelArgument>& wanted) {
  if (kernel.ArgumentCount() != wanted.size())
    return fmt::format("it has {} arguments, the region {}", kernel.ArgumentCount(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Array& array = kernel.arrays[i];
    ArgumentArray own = ArrayOf(wanted[i]);
    if (array.type != own.type)
      return fmt::format("argument {} is {}, the region's is {}", array.name,
                         InfoOf(array.type).text, InfoOf(own.type).text);
    if (array.size > own.size)
      return fmt::format("argument {} has {} elements, the region's {}", array.name, array.size,
                         own.size);
    if (wanted[i].is_output != (array.access != Access::kRead))
      return fmt::format("argument {} is {}, the region's is {}", array.name, TextOf(array.access),
                         wanted[i].is_output ? "written" : "read");
  }
  return "";
}

}  // namespace

std::string TextOfRegion(const FusedRegion& region) {
  Module module("region");
  Computation* entry = module.AddComputation("region");
  std::unordered_map<const Instr*, Instr*> copies;
  auto add_parameter = [&](const Instr* input) {
    if (!copies.contains(input))
      copies[input] = entry->AppendParameter(static_cast<int64_t>(entry->parameters().size()),
                                             input->shape(), LabelOf(*input));
  };
  for (const Instr* input : region.inputs) add_parameter(input);
  for (const Instr* instr : region.instrs) {
    std::vector<Instr*> operands;
    for (const Instr* operand : instr->operands()) {
      if (!copies.contains(operand) && IsImmediate(*operand))
        copies[operand] = CopyAcross(*operand, *entry, {}, *operand);
      if (!copies.contains(operand)) add_parameter(operand);  // an array that it updates
      operands.push_back(copies.at(operand));
    }
    copies[instr] = CopyAcross(*instr, *entry, std::move(operands), *instr);
  }
  // Origins belong to the table of the other module.
  for (Instr* instr : entry->Instrs()) instr->set_origins(OriginId::kNone);
  for (const auto& computation : module.computations()) {
    computation->origins = OriginId::kNone;
    for (Instr* instr : computation->Instrs()) instr->set_origins(OriginId::kNone);
  }
  if (region.roots.size() == 1) {
    entry->set_root(copies.at(region.roots[0]));
  } else {
    std::vector<Instr*> roots;
    std::vector<Shape> shapes;
    for (const Instr* root : region.roots) {
      roots.push_back(copies.at(root));
      shapes.push_back(root->shape());
    }
    entry->set_root(entry->Append(Op::kTuple, Shape::Tuple(std::move(shapes)), std::move(roots)));
  }
  module.set_entry(entry);
  return WriteHloText(module);
}

std::string ArgumentLinesOf(const FusedRegion& region) {
  std::string lines;
  std::set<std::string> names;
  for (const KernelArgument& argument : ArgumentsOf(region)) {
    ArgumentArray array = ArrayOf(argument);
    std::string name = array.name;
    for (char& c : name)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    while (!names.insert(name).second) name += "_";
    lines += fmt::format("argument {}: {}[{}] {} align {}\n", name, InfoOf(array.type).text,
                         array.size, argument.is_output ? "write" : "read", BytesOf(array.type));
  }
  return lines;
}

std::string OpsOf(const std::vector<const Instr*>& instrs) {
  std::string ops;
  for (const Instr* instr : instrs) {
    if (!ops.empty()) ops += ',';
    ops += instr->info().name;
  }
  return ops;
}

Result<BuiltKernel> KernelFromText(const std::string& text, const FusedRegion& region,
                                   const std::string& file) {
  TOK_TRY(ParsedKernel parsed, ParseKernel(text, file));
  TOK_RETURN_IF_ERROR(VerifyKernel(parsed.kernel, &parsed.locations));
  BuiltKernel built;
  built.arguments = ArgumentsOf(region);
  if (std::string why = WhyOtherArguments(parsed.kernel, built.arguments); !why.empty())
    return MakeError(ErrorCode::kPluginFailed, why, {.file = file});
  built.grid = GridOfText(parsed.kernel);
  if (built.grid <= 0)
    return MakeError(ErrorCode::kPluginFailed,
                     "the body is not one grid loop with a constant extent", {.file = file});
  built.kernel = std::move(parsed.kernel);
  for (size_t i = 0; i < built.arguments.size(); ++i)
    built.kernel.arrays[i].name = ArrayOf(built.arguments[i]).name;
  FindMayAlias(built);
  return built;
}

}  // namespace tokamak
