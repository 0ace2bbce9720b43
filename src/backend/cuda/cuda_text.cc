// Writes the statements of a kernel as CUDA C++: each value becomes one `const` line where
// Placement puts it, loops become for statements, grid and thread loops become indices. Vector
// loops, which CUDA does not have, are in cuda_lanes.cc.
//
// A kernel is written twice. The first pass writes every value and records which names the text
// mentions; the second omits values that nothing mentions, such as indices of elements that a wide
// load has fetched.
//
// Clusters: shared memory is replicated in all blocks of a cluster, so a store goes to every block.
// Either a cluster barrier orders stores and loads, or, in a loop, a store signals the mbarrier of
// its sync point and the sync point waits for the expected bytes.

#include "backend/cuda/cuda_text.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "backend/cuda/cuda_writer.h"
#include "kernel/async.h"
#include "kernel/write.h"

namespace tokamak::cuda {
namespace {

std::string OneLine(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 32; }, ' ');
  std::ranges::replace(text, '\\', '/');  // a backslash at the end would continue the comment
  return text;
}

}  // namespace

Result<CudaSource> CudaWriter::Write() {
  TOK_RETURN_IF_ERROR(Layout(kernel_.body));
  source_.name = names_.kernel;
  Function();
  Body(kernel_.body);
  if (source_.cluster > 1) Line("ClusterBarrier();");
  --depth_;
  Line("}}");
  if (failed_) return MakeError(ErrorCode::kCudaText, std::move(failure_));
  std::string top = fmt::format("// Kernel {}.\n", kernel_.name);
  for (const std::string& note : kernel_.notes) top += fmt::format("// {}\n", OneLine(note));
  if (device_function_ == nullptr) top += "\n" + Prelude(source_);
  source_.text = top + text_;
  return std::move(source_);
}

std::string CudaWriter::Element(ArrayId id, ValueId index) const {
  const std::string& name = names_.Of(id);
  if (divergence_.PerLane(id)) return fmt::format("{}[{}][{}]", name, lane_, Operand(index));
  return fmt::format("{}[{}]", name, Operand(index));
}

// A load of the element next to a lane of a wide access reuses the neighbouring lane; only the
// outermost lane loads it.
void CudaWriter::Define(ValueId id) {
  if (needed_ != nullptr && !needed_->contains(id)) return;
  const ScalarNode& node = kernel_.node(id);
  NoteType(node.type);
  std::string value;
  defining_ = id;
  if (vector_loads_.contains(id)) {
    value = Lane(id, lanes_, lane_);
  } else if (auto beside = beside_.find(id); beside != beside_.end()) {
    auto [vector_access, by, lanes] = beside->second;
    std::string beside_lane =
        fmt::format("({} + {}) & {}", lane_, by > 0 ? 1 : lanes - 1, lanes - 1);
    value = fmt::format("{} {} ? {} : {}", lane_, by > 0 ? fmt::format("< {}", lanes - 1) : "> 0",
                        Lane(vector_access, lanes, beside_lane),
                        Element(node.array(), node.operands[0]));
  } else if (node.prim == Prim::kLoad || node.prim == Prim::kRead) {
    value = Element(node.array(), node.operands[0]);
  } else {
    value = Spelled(id);
  }
  Line("const {} {} = {};", Type(node.type), names_.Operand(id), value);
  defining_ = kNoValue;
}

// Moves values that do not depend on a cold path before its branch: a thread that waits for one
// value can compute others meanwhile, but not from beyond a branch.
std::vector<ValueId> CudaWriter::BranchesLast(std::span<const ValueId> ids) const {
  std::unordered_set<ValueId> late;
  for (const ColdPaths::ColdPath& path : cold_paths_.In(ids)) {
    late.insert(path.selects.begin(), path.selects.end());
    late.insert(path.values.begin(), path.values.end());
  }
  std::vector<ValueId> ordered(ids.begin(), ids.end());
  if (late.empty()) return ordered;
  for (ValueId id : ids)
    if (std::ranges::any_of(kernel_.operands(id),
                            [&](ValueId operand) { return late.contains(operand); }))
      late.insert(id);
  std::ranges::stable_partition(ordered, [&](ValueId id) { return !late.contains(id); });
  return ordered;
}

void CudaWriter::DefineAll(std::span<const ValueId> ids) {
  auto is_plain = [&](const ColdPaths::ColdPath& path) {
    return std::ranges::none_of(
        path.selects, [&](ValueId id) { return RepeatedChoice(kernel_, id).has_value(); });
  };
  cold_paths_.Walk(
      ids, is_plain, [&](ValueId id) { Define(id); },
      [&](const ColdPaths::ColdPath& path) { DefineColdPath(path); });
}

// Emits selects with one condition as a branch: the values of the cold path are computed inside it.
void CudaWriter::DefineColdPath(const ColdPaths::ColdPath& path) {
  std::vector<ValueId> selects = path.selects;
  if (needed_ != nullptr)
    std::erase_if(selects, [&](ValueId id) { return !needed_->contains(id); });
  if (selects.empty()) return;
  std::string condition;
  for (ValueId id : selects) {
    const ScalarNode& node = kernel_.node(id);
    defining_ = id;
    condition = Operand(node.operands[0]);
    Line("{} {} = {};", Type(node.type), names_.Operand(id), Operand(node.operands[2]));
  }
  defining_ = kNoValue;
  Line("if ({}) {{", condition);
  ++depth_;
  DefineAll(path.values);
  for (ValueId id : selects) {
    defining_ = id;
    Line("{} = {};", names_.Operand(id), Operand(kernel_.node(id).operands[1]));
  }
  defining_ = kNoValue;
  --depth_;
  Line("}}");
}

std::string CudaWriter::Hidden(const Choice& choice) {
  source_.helpers.insert(Helper::kHidden);
  const ScalarNode& compare = kernel_.node(choice.compare);
  return fmt::format("{}Hidden{}({}, {})", choice.is_negated ? "!" : "",
                     compare.prim == Prim::kLt ? "Lt" : "Le", Operand(compare.operands[0]),
                     Operand(compare.operands[1]));
}

void CudaWriter::Shuffle(ValueId id) {
  if (in_vector_) return Fail("a shuffle between the lanes of a vector loop");
  const ScalarNode& node = kernel_.node(id);
  int count = source_.threads[0] * source_.threads[1] * source_.threads[2];
  if (count > 32 && count % 32 != 0) return Fail("a shuffle in a warp that is not full");
  std::string mask = count >= 32 ? "0xffffffffu" : fmt::format("{:#x}u", (1u << count) - 1);
  if (node.prim == Prim::kMatch) {
    if (count < 32) return Fail("a match in a warp that is not full");
    source_.helpers.insert(Helper::kMatchLanes);
    return Line("const {} {} = MatchLanes<{}>({});", Type(node.type), names_.Operand(id),
                kernel_.node(node.operands[1]).bits, Operand(node.operands[0]));
  }
  Line("const {} {} = {};", Type(node.type), names_.Operand(id),
       spelling_.Shuffle(node.type, Operand(node.operands[0]), Operand(node.operands[1]), mask));
}

bool CudaWriter::SetsRegister(const Stmt& stmt) const {
  return stmt.kind == StmtKind::kStore && kernel_.array(stmt.array).space == Space::kRegisters;
}

// Whether a statement with a body has asynchronous multiplies in it.
bool CudaWriter::MultipliesInside(const Stmt& stmt) {
  for (const StmtList* inner : {&stmt.condition_stmts, &stmt.body, &stmt.else_body})
    for (const Stmt& in : *inner)
      if ((in.kind == StmtKind::kMatMul && in.matmul.async) || MultipliesInside(in)) return true;
  return false;
}

void CudaWriter::Body(const StmtList& block) {
  for (size_t i = 0; i <= block.size();) {
    // Values do not depend on where registers are set: the values of consecutive such statements
    // are computed before all of them.
    size_t end = i + 1;
    while (!in_vector_ && end < block.size() && SetsRegister(block[end - 1]) &&
           SetsRegister(block[end]))
      ++end;
    std::vector<ValueId> values;
    for (size_t at = i; at < end; ++at)
      std::ranges::copy(placement_.Before(block, at), std::back_inserter(values));
    DefineAll(in_vector_ ? values : BranchesLast(values));
    for (; i < end; ++i) {
      if (i == block.size()) continue;
      bool multiplies = MultipliesInside(block[i]);
      if (multiplies) issued_.clear();
      WriteStmt(block[i]);
      if (multiplies) issued_.clear();
    }
  }
}

void CudaWriter::Inner(const StmtList& block) {
  ++depth_;
  Body(block);
  --depth_;
}

void CudaWriter::WriteStmt(const Stmt& stmt) {
  // All lanes have finished their preceding reads.
  if (mbarriers_ && mbarriers_->sending.contains(&stmt)) Line("__syncwarp();");
  switch (stmt.kind) {
    case StmtKind::kFor:
      return For(stmt);
    case StmtKind::kIf:
      Line("if ({}) {{", Operand(stmt.condition));
      Inner(stmt.body);
      if (!stmt.else_body.empty()) {
        Line("}} else {{");
        Inner(stmt.else_body);
      }
      Line("}}");
      return;
    case StmtKind::kWhile:
      Line("for (;;) {{");
      ++depth_;
      Body(stmt.condition_stmts);
      Line("if (!{}) break;", Operand(stmt.condition));
      Body(stmt.body);
      --depth_;
      Line("}}");
      return;
    case StmtKind::kStore:
      return Store(stmt);
    case StmtKind::kRead:
      return Define(stmt.value);
    case StmtKind::kShuffle:
      return Shuffle(stmt.value);
    case StmtKind::kBarrier:
      return EmitBarrier(stmt);
    case StmtKind::kMatMul:
      return Multiply(stmt);
    case StmtKind::kAsync:
      return Async(stmt);
  }
}

void CudaWriter::EmitBarrier(const Stmt& stmt) {
  if (stmt.scope == BarrierScope::kWarp) return EmitWarpBarrier();
  if (source_.cluster == 1) return Line("__syncthreads();");
  if (!mbarriers_) return Line("ClusterBarrier();");
  Line("AwaitAll({}, {} >> 1 & 1, {});", MbarrierFor(stmt), names_.Of(mbarriers_->loop),
       mbarriers_->bytes[mbarriers_->sync_points.at(&stmt)]);
}

// The mask excludes lanes that are not part of the block: they may run something else.
void CudaWriter::EmitWarpBarrier() {
  int count = source_.threads[0] * source_.threads[1] * source_.threads[2];
  if (count >= 32) return Line("__syncwarp();");
  Line("__syncwarp({:#x}u);", (1u << count) - 1);
}

// Each sync point has two mbarriers, used alternately: some blocks may be one iteration ahead of
// others, but never two.
std::string CudaWriter::MbarrierFor(const Stmt& stmt) const {
  return fmt::format("mbarriers + ({} & 1) + {}", names_.Of(mbarriers_->loop),
                     2 * mbarriers_->sync_points.at(&stmt));
}

// In a cluster, a store to shared memory goes to all blocks. Outside of a vector loop, a store to a
// per-lane array sets all lanes.
void CudaWriter::Store(const Stmt& stmt) {
  if (source_.cluster > 1 && kernel_.array(stmt.array).space == Space::kShared) {
    if (in_vector_) return Fail("lanes store to the memory of several blocks");
    if (mbarriers_) {
      Line("SendToAll<{}>(&{}, {}, {});", source_.cluster, Element(stmt.array, stmt.index),
           Operand(stmt.value), MbarrierFor(stmt));
    } else {
      Line("StoreToAll<{}>(&{}, {});", source_.cluster, Element(stmt.array, stmt.index),
           Operand(stmt.value));
    }
  } else if (vector_stores_.contains(&stmt)) {
    Line("{}.at[{}] = {};", StoredName(stmt), lane_, Operand(stmt.value));
  } else if (divergence_.PerLane(stmt.array) && !in_vector_) {
    int64_t lanes = LanesOf(static_cast<size_t>(stmt.array));
    Line("for (int lane = 0; lane < {}; ++lane) {}[lane][{}] = {};", lanes, names_.Of(stmt.array),
         Operand(stmt.index), Operand(stmt.value));
  } else {
    Line("{} = {};", Element(stmt.array, stmt.index), Operand(stmt.value));
  }
}

void CudaWriter::For(const Stmt& stmt) {
  const Loop& loop = kernel_.loop(stmt.loop);
  const std::string& name = names_.Of(stmt.loop);
  switch (loop.role) {
    case LoopRole::kGrid:
      Grid(stmt);
      return Body(stmt.body);
    case LoopRole::kThread: {
      auto at = static_cast<size_t>(std::ranges::find(threads_, stmt.loop) - threads_.begin());
      Line("const {} {} = {};", IndexType(), name, ThreadIndex(threads_.size() - 1 - at));
      return Body(stmt.body);
    }
    case LoopRole::kVector:
      if (IsVector(kernel_, loop)) return Vector(stmt);
      [[fallthrough]];
    case LoopRole::kUnrolled:
      Line("#pragma unroll");
      [[fallthrough]];
    case LoopRole::kSerial:
      size_t begin = text_.size();
      Line("for ({0} {1} = 0; {1} < {2}; ++{1}) {{", IndexType(), name, Operand(loop.extent));
      Inner(stmt.body);
      Line("}}");
      if (loop.role == LoopRole::kSerial &&
          (UsesAsync(stmt.body) || IsLong(loop, std::string_view(text_).substr(begin))))
        text_.insert(begin, "#pragma unroll 1\n");
  }
}

// Whether a loop is too long to unroll. ptxas fully unrolls loops of constant extent, however long
// they become: 95 iterations of 500 instructions took 2.8 s to compile, 0.13 s as a loop (measured
// with CUDA 13.0).
bool CudaWriter::IsLong(const Loop& loop, std::string_view text) const {
  constexpr int64_t kMostLines = 1024;  // lines of all iterations; chosen; no measurement on record
  constexpr int64_t kShortBody = 64;  // lines; the compiler unrolls such a body a few times; chosen
  const ScalarNode& extent = kernel_.node(loop.extent);
  auto lines = std::count(text.begin(), text.end(), '\n');
  return extent.prim == Prim::kConst && lines > kShortBody &&
         lines * static_cast<int64_t>(extent.bits) > kMostLines;
}

Result<CudaSource> CudaText(const Kernel& kernel) {
  CudaWriter first_pass(kernel);
  TOK_RETURN_IF_ERROR(first_pass.Write());
  std::set<ValueId> needed = first_pass.mentions().Needed();
  return CudaWriter(kernel, &needed).Write();
}

Result<CudaSource> DeviceFunctionText(const Kernel& kernel, const std::string& name) {
  CudaWriter first_pass(kernel, nullptr, &name);
  TOK_RETURN_IF_ERROR(first_pass.Write());
  std::set<ValueId> needed = first_pass.mentions().Needed();
  return CudaWriter(kernel, &needed, &name).Write();
}

}  // namespace tokamak::cuda
