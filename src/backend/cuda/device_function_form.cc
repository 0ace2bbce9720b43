#include "backend/cuda/device_function_form.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "backend/cuda/cuda_writer.h"

namespace tokamak::cuda {
namespace {

// Delimiters of a placeholder; they occur in no kernel text.
constexpr char kBegin = '\1', kEnd = '\2';

// Primitives whose operand may be an open constant: comparisons and clamps of an index. Other
// constants may be needed at compile time, such as register indices and divisors.
bool IsBound(Prim prim) {
  return prim == Prim::kLt || prim == Prim::kLe || prim == Prim::kMin || prim == Prim::kMax;
}

bool IsCommutative(Prim prim) {
  return prim == Prim::kAdd || prim == Prim::kMul || prim == Prim::kFma || prim == Prim::kMinimum ||
         prim == Prim::kMaximum;
}

// Marks the indices that statements use directly: extents of loops, element indices.
void MarkUsed(const Kernel& kernel, const StmtList& block, std::vector<bool>& used) {
  auto use = [&](ValueId id) {
    if (id != kNoValue && kernel.node(id).type == ScalarType::kIndex)
      used[static_cast<size_t>(id)] = true;
  };
  for (const Stmt& stmt : block) {
    if (stmt.kind == StmtKind::kFor) use(kernel.loop(stmt.loop).extent);
    if (stmt.kind == StmtKind::kStore) {
      use(stmt.index);
      use(stmt.value);
    }
    if (stmt.kind == StmtKind::kMatMul)
      for (ValueId operand : MatMulOperandsOf(stmt)) use(operand);
    if (stmt.kind == StmtKind::kAsync)
      for (ValueId operand : AsyncOperandsOf(stmt)) use(operand);
    for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
      MarkUsed(kernel, *inner, used);
  }
}

}  // namespace

OpenConstants::OpenConstants(const Kernel& kernel)
    : kernel_(kernel), open_(kernel.nodes.size(), false) {
  std::vector<bool> used(kernel.nodes.size(), false);
  MarkUsed(kernel, kernel.body, used);
  for (const ScalarNode& node : kernel.nodes)
    for (size_t i = 0; i < static_cast<size_t>(node.arity()); ++i)
      if (!IsBound(node.prim)) used[static_cast<size_t>(node.operands[i])] = true;
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& node = kernel.nodes[i];
    if (node.prim != Prim::kConst) continue;
    bool is_bound = node.type == ScalarType::kIndex && kernel.index_bits == 32 && !used[i];
    open_[i] = is_bound || node.type == ScalarType::kF32;
  }
}

std::string OpenConstants::MarkOf(ValueId id, const std::string& literal) {
  auto [at, is_new] = numbers_.try_emplace(id, mentioned_.size());
  const ScalarNode& node = kernel_.node(id);
  if (is_new) mentioned_.push_back({node.type, node.bits, literal});
  return fmt::format("{}{}{}", kBegin, at->second, kEnd);
}

Result<DeviceFunctionForm> DeviceFunctionFormOf(const Kernel& kernel, const std::string& name) {
  CudaWriter first_pass(kernel, nullptr, &name);
  TOK_RETURN_IF_ERROR(first_pass.Write());
  std::set<ValueId> needed = first_pass.mentions().Needed();
  OpenConstants constants(kernel);
  DeviceFunctionForm form;
  TOK_TRY(form.source, CudaWriter(kernel, &needed, &name, &constants).Write());
  form.constants = constants.mentioned();
  return form;
}

std::string WithoutMarks(const std::string& text, const std::vector<std::string>& words) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t begin = std::min(text.find(kBegin, at), text.size());
    out.append(text, at, begin - at);
    if (begin == text.size()) break;
    size_t end = text.find(kEnd, begin);
    out += words[std::stoul(text.substr(begin + 1, end - begin - 1))];
    at = end + 1;
  }
  return out;
}

Kernel WithoutNames(const Kernel& kernel) {
  Kernel plain = kernel;
  plain.name = "part";
  plain.notes.clear();
  for (size_t i = 0; i < plain.arrays.size(); ++i)
    plain.arrays[i].name = fmt::format("array_{}", i);
  for (size_t i = 0; i < plain.loops.size(); ++i) plain.loops[i].name = fmt::format("loop_{}", i);
  for (ScalarNode& node : plain.nodes) {
    if (!IsCommutative(node.prim) || node.type != ScalarType::kF32) continue;
    auto order = [&](ValueId id) { return std::pair(plain.IsConstant(id), id); };
    if (order(node.operands[1]) < order(node.operands[0]))
      std::swap(node.operands[0], node.operands[1]);
  }
  return plain;
}

}  // namespace tokamak::cuda
