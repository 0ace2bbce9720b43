#include "kernel/names.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <unordered_set>

#include <fmt/format.h>

namespace tokamak {
namespace {

// Reserved words of kernel text and of CUDA C++.
constexpr std::string_view kReserved[] = {
    "alignas",       "alignof",     "and",      "argument",  "asm",       "auto",
    "barrier",       "bf16",        "bool",     "break",     "case",      "catch",
    "char",          "class",       "const",    "constexpr", "continue",  "default",
    "delete",        "do",          "double",   "else",      "enum",      "explicit",
    "export",        "extent",      "extern",   "false",     "float",     "for",
    "friend",        "goto",        "grid",     "half",      "if",        "index",
    "inf",           "inline",      "int",      "kernel",    "load",      "long",
    "mutable",       "namespace",   "nan",      "new",       "not",       "note",
    "operator",      "or",          "private",  "protected", "public",    "read",
    "register",      "registers",   "repeat",   "return",    "serial",    "shared",
    "short",         "signed",      "sizeof",   "static",    "store",     "struct",
    "switch",        "shared",      "template", "this",      "thread",    "throw",
    "true",          "try",         "typedef",  "typename",  "uniform",   "union",
    "unrolled",      "unsigned",    "using",    "vector",    "virtual",   "void",
    "volatile",      "while",       "write",    "xor",       "threadIdx", "blockIdx",
    "blockDim",      "gridDim",     "warpSize", "char4",     "float4",    "int4",
    "shared_memory", "block_number"};

// Functions that CUDA C++ declares implicitly: a kernel cannot have these names.
constexpr std::string_view kDeclared[] = {
    "abs",       "acos",      "acosh",   "asin",      "asinh",  "assert",  "atan",
    "atan2",     "atanh",     "cbrt",    "ceil",      "clock",  "cos",     "cosh",
    "cospi",     "copysign",  "div",     "erf",       "erfc",   "erfcinv", "erfcx",
    "erfinv",    "exp",       "exp10",   "exp2",      "expm1",  "fabs",    "fdim",
    "fdivide",   "floor",     "fma",     "fmax",      "fmin",   "fmod",    "free",
    "frexp",     "hypot",     "ilogb",   "isfinite",  "isinf",  "isnan",   "j0",
    "j1",        "jn",        "labs",    "ldexp",     "lgamma", "llabs",   "llrint",
    "llround",   "log",       "log10",   "log1p",     "log2",   "logb",    "lrint",
    "lround",    "malloc",    "max",     "memcpy",    "memset", "min",     "modf",
    "nearbyint", "nextafter", "norm",    "norm3d",    "norm4d", "normcdf", "normcdfinv",
    "pow",       "printf",    "rcbrt",   "remainder", "remquo", "rhypot",  "rint",
    "rnorm",     "rnorm3d",   "rnorm4d", "round",     "rsqrt",  "scalbln", "scalbn",
    "signbit",   "sin",       "sincos",  "sincospi",  "sinh",   "sinpi",   "sqrt",
    "tan",       "tanh",      "tgamma",  "trunc",     "y0",     "y1",      "yn"};

bool IsDeclared(std::string_view name) {
  std::string_view stem = name.ends_with('f') ? name.substr(0, name.size() - 1) : name;
  return std::ranges::find(kDeclared, name) != std::end(kDeclared) ||
         std::ranges::find(kDeclared, stem) != std::end(kDeclared);
}

bool IsValueName(std::string_view name) {
  return name.size() > 1 && name[0] == 'v' &&
         std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

class UniqueNames {
 public:
  std::string Add(std::string_view wanted) {
    std::string base = IdentifierFrom(wanted), name = base;
    for (int i = 1; !used_names_.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
    return name;
  }

 private:
  std::unordered_set<std::string> used_names_;
};

// Numbers the values of a statement block and of nested blocks, in text order.
void NumberBlock(const Placement& placement, const StmtList& block, std::vector<int>& values,
                 int& next) {
  for (size_t i = 0; i <= block.size(); ++i) {
    for (ValueId id : placement.Before(block, i))
      if (values[static_cast<size_t>(id)] < 0) values[static_cast<size_t>(id)] = next++;
    if (i == block.size()) break;
    const Stmt& stmt = block[i];
    switch (stmt.kind) {
      case StmtKind::kRead:
      case StmtKind::kShuffle:
        values[static_cast<size_t>(stmt.value)] = next++;
        break;
      case StmtKind::kFor:
        NumberBlock(placement, stmt.body, values, next);
        break;
      case StmtKind::kIf:
        NumberBlock(placement, stmt.body, values, next);
        if (!stmt.else_body.empty()) NumberBlock(placement, stmt.else_body, values, next);
        break;
      case StmtKind::kWhile:
        NumberBlock(placement, stmt.condition_stmts, values, next);
        NumberBlock(placement, stmt.body, values, next);
        break;
      case StmtKind::kStore:
      case StmtKind::kBarrier:
      case StmtKind::kMatMul:
      case StmtKind::kAsync:
        break;
    }
  }
}

std::string FloatText(ScalarType type, Bits bits) {
  double value = DoubleOfBits(type, bits);
  if (std::isnan(value) && bits != BitsOfDouble(type, std::nan("")))
    return fmt::format("{:#x}", bits);
  if (std::isnan(value)) return "nan";
  return type == ScalarType::kF64 ? fmt::format("{}", value)
                                  : fmt::format("{}", static_cast<float>(value));
}

}  // namespace

std::string IdentifierFrom(std::string_view name) {
  std::string text;
  for (char c : name) {
    bool is_word = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    text += is_word && static_cast<unsigned char>(c) < 128 ? c : '_';
  }
  // ptxas rejects names that consist of underscores only.
  if (text.find_first_not_of('_') == std::string::npos) text.insert(0, 1, 'x');
  if (std::isdigit(static_cast<unsigned char>(text[0])) != 0) text.insert(0, 1, '_');
  bool reserved = std::ranges::find(kReserved, text) != std::end(kReserved);
  if (reserved || IsValueName(text) || ScalarTypeFromText(text) || PrimFromText(text)) text += '_';
  return text;
}

std::string ConstantText(ScalarType type, Bits bits) {
  if (type == ScalarType::kIndex) return fmt::format("{}", IntOfBits(type, bits));
  if (type == ScalarType::kPred) return bits != 0 ? "true" : "false";
  std::string_view of = InfoOf(type).text;
  if (IsFloat(type)) return fmt::format("{}({})", of, FloatText(type, bits));
  if (IsSigned(type)) return fmt::format("{}({})", of, IntOfBits(type, bits));
  return fmt::format("{}({})", of, bits);
}

KernelNames::KernelNames(const Kernel& kernel, const Placement& placement) : of_(&kernel) {
  UniqueNames names;
  std::string own = IdentifierFrom(kernel.name.empty() ? "kernel_" : kernel.name);
  this->kernel = names.Add(IsDeclared(own) ? own + "_" : own);
  for (const Array& array : kernel.arrays) arrays.push_back(names.Add(array.name));
  for (const LaunchExtent& extent : kernel.extents) extents.push_back(names.Add(extent.name));
  for (const Loop& loop : kernel.loops) loops.push_back(names.Add(loop.name));
  values.assign(kernel.nodes.size(), -1);
  int next = 0;
  NumberBlock(placement, kernel.body, values, next);
}

std::string KernelNames::Operand(ValueId id) const {
  const ScalarNode& node = of_->node(id);
  switch (node.prim) {
    case Prim::kConst:
      return ConstantText(node.type, node.bits);
    case Prim::kLoop:
      return Of(node.loop());
    case Prim::kExtent:
      return Of(node.extent());
    default:
      return fmt::format("v{}", values[static_cast<size_t>(id)]);
  }
}

}  // namespace tokamak
