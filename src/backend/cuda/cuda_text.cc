#include "backend/cuda/cuda_text.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "backend/cuda/cuda_writer.h"
#include "kernel/write.h"

namespace tokamak::cuda {
namespace {

std::string OneLine(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 32; }, ' ');
  std::ranges::replace(text, '\\', '/');  // a backslash at the end would go on
  return text;
}

}  // namespace

Result<CudaSource> CudaWriter::Write() {
  TOK_RETURN_IF_ERROR(Layout(kernel_.body));
  source_.name = names_.kernel;
  Function();
  Body(kernel_.body);
  if (source_.cluster > 1) Line("MeetInCluster();");
  --depth_;
  Line("}}");
  if (failed_) return MakeError(ErrorCode::kCudaText, std::move(failure_));
  std::string top = fmt::format("// Kernel {}.\n", kernel_.name);
  for (const std::string& note : kernel_.notes) top += fmt::format("// {}\n", OneLine(note));
  if (part_ == nullptr) top += "\n" + Prelude(source_);
  source_.text = top + text_;
  return std::move(source_);
}

std::string CudaWriter::Element(ArrayId id, ValueId index) const {
  const std::string& name = names_.Of(id);
  if (variance_.PerLane(id)) return fmt::format("{}[{}][{}]", name, lane_, Operand(index));
  return fmt::format("{}[{}]", name, Operand(index));
}

void CudaWriter::Define(ValueId id) {
  if (needed_ != nullptr && !needed_->contains(id)) return;
  const ScalarNode& node = kernel_.node(id);
  NoteType(node.type);
  std::string value;
  defining_ = id;
  if (packed_loads_.contains(id)) {
    value = Lane(id, lanes_, lane_);
  } else if (auto beside = beside_.find(id); beside != beside_.end()) {
    auto [packed, by, lanes] = beside->second;
    std::string beside_lane =
        fmt::format("({} + {}) & {}", lane_, by > 0 ? 1 : lanes - 1, lanes - 1);
    value = fmt::format("{} {} ? {} : {}", lane_, by > 0 ? fmt::format("< {}", lanes - 1) : "> 0",
                        Lane(packed, lanes, beside_lane), Element(node.array(), node.operands[0]));
  } else if (node.prim == Prim::kLoad || node.prim == Prim::kRead) {
    value = Element(node.array(), node.operands[0]);
  } else {
    value = Spelled(id);
  }
  Line("const {} {} = {};", Type(node.type), names_.Operand(id), value);
  defining_ = kNoValue;
}

// What needs nothing of a branch for rare numbers, first: a thread that waits for one value
// computes others meanwhile, but none from beyond a branch.
std::vector<ValueId> CudaWriter::BranchesLast(std::span<const ValueId> ids) const {
  std::unordered_set<ValueId> late;
  for (const RareArms::Arm& arm : rare_.In(ids)) {
    late.insert(arm.selects.begin(), arm.selects.end());
    late.insert(arm.values.begin(), arm.values.end());
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
  auto is_plain = [&](const RareArms::Arm& arm) {
    return std::ranges::none_of(
        arm.selects, [&](ValueId id) { return RepeatedChoice(kernel_, id).has_value(); });
  };
  rare_.Walk(
      ids, is_plain, [&](ValueId id) { Define(id); },
      [&](const RareArms::Arm& arm) { DefineRare(arm); });
}

void CudaWriter::DefineRare(const RareArms::Arm& arm) {
  std::vector<ValueId> selects = arm.selects;
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
  DefineAll(arm.values);
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
    source_.helpers.insert(Helper::kAlike);
    return Line("const {} {} = Alike<{}>({});", Type(node.type), names_.Operand(id),
                kernel_.node(node.operands[1]).bits, Operand(node.operands[0]));
  }
  Line("const {} {} = {};", Type(node.type), names_.Operand(id),
       spelling_.Shuffle(node.type, Operand(node.operands[0]), Operand(node.operands[1]), mask));
}

bool CudaWriter::SetsRegister(const Stmt& stmt) const {
  return stmt.kind == StmtKind::kStore && kernel_.array(stmt.array).space == Space::kRegisters;
}

void CudaWriter::Body(const Block& block) {
  for (size_t i = 0; i <= block.size();) {
    // Values do not depend on where registers are set: those of several such statements in a row
    // are computed before all of them.
    size_t end = i + 1;
    while (!in_vector_ && end < block.size() && SetsRegister(block[end - 1]) &&
           SetsRegister(block[end]))
      ++end;
    std::vector<ValueId> values;
    for (size_t at = i; at < end; ++at)
      std::ranges::copy(placement_.Before(block, at), std::back_inserter(values));
    DefineAll(in_vector_ ? values : BranchesLast(values));
    for (; i < end; ++i)
      if (i < block.size()) WriteStmt(block[i]);
  }
}

void CudaWriter::Inner(const Block& block) {
  ++depth_;
  Body(block);
  --depth_;
}

void CudaWriter::WriteStmt(const Stmt& stmt) {
  // All lanes have read what they read before.
  if (arrivals_ && arrivals_->sending.contains(&stmt)) Line("__syncwarp();");
  switch (stmt.kind) {
    case StmtKind::kFor:
      return For(stmt);
    case StmtKind::kIf:
      Line("if ({}) {{", Operand(stmt.condition));
      Inner(stmt.body);
      if (!stmt.otherwise.empty()) {
        Line("}} else {{");
        Inner(stmt.otherwise);
      }
      Line("}}");
      return;
    case StmtKind::kWhile:
      Line("for (;;) {{");
      ++depth_;
      Body(stmt.head);
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
      return Meet(stmt);
    case StmtKind::kMultiply:
      return Multiply(stmt);
  }
}

void CudaWriter::Meet(const Stmt& stmt) {
  if (stmt.scope == Scope::kWarp) return MeetInWarp();
  if (source_.cluster == 1) return Line("__syncthreads();");
  if (!arrivals_) return Line("MeetInCluster();");
  Line("AwaitAll({}, {} >> 1 & 1, {});", ArrivalsFor(stmt), names_.Of(arrivals_->loop),
       arrivals_->bytes[arrivals_->meetings.at(&stmt)]);
}

// Lanes that are not of the team may run something else meanwhile: nobody waits for them.
void CudaWriter::MeetInWarp() {
  int count = source_.threads[0] * source_.threads[1] * source_.threads[2];
  if (count >= 32) return Line("__syncwarp();");
  Line("__syncwarp({:#x}u);", (1u << count) - 1);
}

// Two for each meeting take turns: some blocks may be one round ahead of others, none two.
std::string CudaWriter::ArrivalsFor(const Stmt& stmt) const {
  return fmt::format("arrivals + ({} & 1) + {}", names_.Of(arrivals_->loop),
                     2 * arrivals_->meetings.at(&stmt));
}

void CudaWriter::Store(const Stmt& stmt) {
  if (source_.cluster > 1 && kernel_.array(stmt.array).space == Space::kTeam) {
    if (in_vector_) return Fail("lanes store to the memory of several blocks");
    if (arrivals_) {
      Line("SendToAll<{}>(&{}, {}, {});", source_.cluster, Element(stmt.array, stmt.index),
           Operand(stmt.value), ArrivalsFor(stmt));
    } else {
      Line("StoreToAll<{}>(&{}, {});", source_.cluster, Element(stmt.array, stmt.index),
           Operand(stmt.value));
    }
  } else if (packed_stores_.contains(&stmt)) {
    Line("{}.at[{}] = {};", StoredName(stmt), lane_, Operand(stmt.value));
  } else if (variance_.PerLane(stmt.array) && !in_vector_) {
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
      if (loop.role == LoopRole::kSerial && IsLong(loop, std::string_view(text_).substr(begin)))
        text_.insert(begin, "#pragma unroll 1\n");
  }
}

// ptxas unrolls loops of constant extent whole, however long they become: 95 iterations of 500
// instructions took 2.8 s to compile, 0.13 s as a loop (CUDA 13.0).
bool CudaWriter::IsLong(const Loop& loop, std::string_view text) const {
  constexpr int64_t kMostLines = 1024;  // of all iterations
  constexpr int64_t kShortBody = 64;    // lines that the compiler unrolls by a few iterations
  const ScalarNode& extent = kernel_.node(loop.extent);
  auto lines = std::count(text.begin(), text.end(), '\n');
  return extent.prim == Prim::kConst && lines > kShortBody &&
         lines * static_cast<int64_t>(extent.bits) > kMostLines;
}

Result<CudaSource> CudaText(const Kernel& kernel) {
  CudaWriter draft(kernel);
  TOK_RETURN_IF_ERROR(draft.Write());
  std::set<ValueId> needed = draft.mentions().Needed();
  return CudaWriter(kernel, &needed).Write();
}

Result<CudaSource> CudaPartText(const Kernel& kernel, const std::string& name) {
  CudaWriter draft(kernel, nullptr, &name);
  TOK_RETURN_IF_ERROR(draft.Write());
  std::set<ValueId> needed = draft.mentions().Needed();
  return CudaWriter(kernel, &needed, &name).Write();
}

}  // namespace tokamak::cuda
