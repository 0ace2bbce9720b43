// Loops and conditionals. Their bodies are lowered inline, inside their step.

#include <algorithm>

#include "analysis/loops.h"
#include "lower/lowerer.h"

namespace tokamak {

std::vector<Leaves> Lowerer::Split(const Computation& computation, const Leaves& all) {
  std::vector<Leaves> split;
  size_t next = 0;
  for (const Instr* parameter : computation.parameters()) {
    size_t count = LeavesOf(parameter->shape()).size();
    split.emplace_back(all.begin() + static_cast<int64_t>(next),
                       all.begin() + static_cast<int64_t>(next + count));
    next += count;
  }
  return split;
}

namespace {

// Per leaf of the loop state: whether it is loop-invariant (the body returns its parameter).
std::vector<bool> InvariantLeaves(const Instr& loop) {
  std::vector<bool> invariant;
  const Computation& body = *loop.called(1);
  for (size_t i = 0; i < body.parameters().size(); ++i) {
    const Instr* parameter = body.parameter(i);
    bool is_tuple = body.root()->op() == Op::kTuple && body.root()->operand_count() > i;
    bool same = body.parameters().size() > 1 && is_tuple && body.root()->operand(i) == parameter;
    invariant.resize(invariant.size() + LeavesOf(parameter->shape()).size(), same);
  }
  return invariant;
}

}  // namespace

void Lowerer::LowerWhile(Frame& frame, const Instr& instr) {
  if (auto fused = frame.fused_loops.find(&instr); fused != frame.fused_loops.end())
    return LaunchWholeLoop(frame, instr, fused->second);
  Leaves inits;
  for (const Instr* operand : instr.operands()) {
    const Leaves& own = frame.leaves[operand];
    inits.insert(inits.end(), own.begin(), own.end());
  }
  Leaves carries = NewLeaves(instr.shape());
  // A loop-invariant value is never written: the loop reads the initial value's buffer.
  std::vector<bool> invariant = InvariantLeaves(instr);
  for (size_t i = 0; i < carries.size(); ++i) {
    if (invariant[i])
      carries[i] = inits[i];
    else
      Copy(*frame.steps, carries[i], inits[i]);
  }
  int64_t begin = memory_.Tick();
  size_t mark = memory_.BeginLoop();
  for (MemoryValue carry : carries) memory_.Use(carry);
  RunStep step{.kind = StepKind::kWhile, .target = program_.loops.size(), .at = begin};
  step.runs_first = RunsInChunks(instr);
  program_.loops.push_back(&instr);
  step.blocks.resize(kWhileBlocks);
  const Computation &condition = *instr.called(0), &body = *instr.called(1);
  Leaves holds = LowerComputation(condition, Split(condition, carries), step.blocks[0]);
  memory_.Tick();
  memory_.Use(holds[0]);
  step.slices = {Unassigned(holds[0])};
  Leaves next = LowerComputation(body, Split(body, carries), step.blocks[1]);
  CloseBody(carries, next, step);
  memory_.Tick();
  for (MemoryValue carry : carries) memory_.Use(carry);
  for (const RunStep& copy : step.blocks[2])
    memory_.Use(static_cast<MemoryValue>(copy.slices[1].offset));
  memory_.EndLoop(mark, begin);
  frame.leaves[&instr] = std::move(carries);
  frame.steps->push_back(std::move(step));
}

void Lowerer::CloseBody(const Leaves& carries, const Leaves& next, RunStep& loop) {
  std::vector<RunStep>&steps = loop.blocks[1], paired;
  auto is_carry = [&](MemoryValue value) {
    return std::find(carries.begin(), carries.end(), value) != carries.end();
  };
  Leaves from = next;
  for (size_t i = 0; i < carries.size(); ++i) {
    if (carries[i] == kNoMemory || next[i] == carries[i] || !is_carry(next[i])) continue;
    from[i] = memory_.New(memory_.bytes(next[i]));
    Copy(steps, from[i], next[i]);
  }
  std::vector<bool> joined(carries.size());
  for (size_t i = 0; i < carries.size(); ++i) {
    if (carries[i] == kNoMemory || next[i] == carries[i]) continue;
    joined[i] = from[i] == next[i] && memory_.JoinCarry(carries[i], from[i]);
  }
  for (size_t i = 0; i < carries.size(); ++i) {
    if (carries[i] == kNoMemory || next[i] == carries[i] || joined[i]) continue;
    memory_.Tick();
    memory_.Use(from[i]);
    memory_.Use(carries[i]);
    if (memory_.bytes(carries[i]) == 0) continue;
    bool pair = memory_.PairCarry(carries[i], from[i], loop.at);
    (pair ? paired : steps)
        .push_back({.kind = StepKind::kCopy,
                    .slices = {Unassigned(carries[i]), Unassigned(from[i])},
                    .bytes = memory_.bytes(carries[i]),
                    .at = memory_.now()});
  }
  // These copies go last, because the other copies may read the buffers that these overwrite.
  for (RunStep& copy : paired) {
    copy.at = memory_.Tick();
    for (const BufferSlice& slice : copy.slices)
      memory_.Use(static_cast<MemoryValue>(slice.offset));
    loop.blocks[2].push_back(std::move(copy));
  }
}

void Lowerer::LowerConditional(Frame& frame, const Instr& instr) {
  memory_.Tick();
  MemoryValue index = frame.leaves[instr.operand(0)][0];
  memory_.Use(index);
  RunStep step{.kind = StepKind::kConditional, .slices = {Unassigned(index)}, .at = memory_.now()};
  step.is_pred = instr.operand(0)->shape().type() == ElementType::kPred;
  step.blocks.resize(instr.called().size());
  Leaves results = NewLeaves(instr.shape());
  size_t operand = 1;
  for (size_t i = 0; i < instr.called().size(); ++i) {
    const Computation& branch = *instr.called(i);
    std::vector<Leaves> arguments;
    for (size_t p = 0; p < branch.parameters().size(); ++p)
      arguments.push_back(frame.leaves[instr.operand(operand++)]);
    int64_t begin = memory_.Tick();
    Leaves values = LowerComputation(branch, arguments, step.blocks[i]);
    Leaves taken;
    for (size_t k = 0; k < results.size(); ++k) {
      if (results[k] == kNoMemory || memory_.bytes(results[k]) == 0) continue;
      memory_.Tick();
      memory_.Use(values[k]);
      bool first = std::find(taken.begin(), taken.end(), values[k]) == taken.end();
      bool joined = first && memory_.JoinBranch(results[k], values[k], begin);
      taken.push_back(values[k]);
      memory_.Define(results[k]);
      if (joined) continue;
      step.blocks[i].push_back({.kind = StepKind::kCopy,
                                .slices = {Unassigned(results[k]), Unassigned(values[k])},
                                .bytes = memory_.bytes(results[k]),
                                .at = memory_.now()});
    }
  }
  frame.leaves[&instr] = std::move(results);
  frame.steps->push_back(std::move(step));
}

}  // namespace tokamak
