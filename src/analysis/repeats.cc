#include "analysis/repeats.h"

#include <algorithm>
#include <unordered_map>

#include "ir/compare.h"
#include "support/hash.h"

namespace tokamak {
namespace {

// Users from which a view counts as shared by steps. Chosen.
constexpr size_t kManyUsers = 4;

// Views of values that exist before any step, if several steps (or only such views) use them.
InstrMap<char> FindShared(const Computation& computation, const std::vector<Instr*>& order) {
  InstrMap<char> early(computation, 0), shared(computation, 0);
  for (const Instr* instr : order) {
    bool is_start = instr->op() == Op::kParameter || IsLeafValue(*instr);
    early[instr] = is_start || (IsViewOp(instr->op()) && early[instr->operand(0)] != 0);
  }
  for (size_t i = order.size(); i-- > 0;) {
    const Instr* instr = order[i];
    if (early[instr] == 0) continue;
    bool is_start = instr->op() == Op::kParameter || IsLeafValue(*instr);
    bool only_shared =
        !instr->users().empty() &&
        std::ranges::all_of(instr->users(), [&](const Instr* u) { return shared[u] != 0; });
    shared[instr] = is_start || instr->users().size() >= kManyUsers || only_shared;
  }
  return shared;
}

uint64_t TokenOf(const Instr& instr) {
  Hasher hasher;
  hasher.Add(instr.op());
  hasher.Add(instr.shape().Hash());
  hasher.Add(instr.operand_count());
  if (instr.op() == Op::kSlice) {
    const auto& slice = instr.attrs<SliceAttrs>();
    for (size_t d = 0; d < slice.starts.size(); ++d) {
      hasher.Add(slice.limits[d] - slice.starts[d]);
      hasher.Add(d < slice.strides.size() ? slice.strides[d] : 1);
    }
  } else {
    hasher.Add(HashAttrs(instr.op(), instr.attrs()));
  }
  // The address is only compared for equality: no result depends on memory layout.
  for (const Computation* callee : instr.called())
    hasher.Add(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(callee)));
  if (instr.extras().sharding) hasher.Add(HashOf(*instr.extras().sharding));
  return hasher.digest();
}

}  // namespace

bool IsViewOp(Op op) {
  switch (op) {
    case Op::kBroadcast:
    case Op::kReshape:
    case Op::kTranspose:
    case Op::kSlice:
    case Op::kReverse:
    case Op::kConvert:
    case Op::kBitcast:
    case Op::kBitcastConvert:
      return true;
    default:
      return false;
  }
}

bool IsLeafValue(const Instr& instr) {
  if (instr.op() == Op::kConstant || instr.op() == Op::kIota) return true;
  return instr.op() == Op::kBroadcast && instr.operand(0)->op() == Op::kConstant;
}

StepLine::StepLine(const Computation& computation, const Effects& effects) {
  std::vector<Instr*> order = computation.PostOrder();
  InstrMap<char> shared = FindShared(computation, order);
  positions_.assign(computation.id_limit(), -1);
  for (Instr* instr : order) {
    if (shared[instr] != 0) continue;
    positions_[static_cast<size_t>(instr->id())] = static_cast<int64_t>(instrs_.size());
    bool is_alone = effects.Of(*instr) || instr->is_control_predecessor() ||
                    !instr->extras().control_predecessors.empty() || instr->shape().IsToken();
    Hasher alone;
    alone.Add(uint64_t{0x9e37});
    alone.Add(instrs_.size());
    tokens_.push_back(is_alone ? alone.digest() : TokenOf(*instr));
    instrs_.push_back(instr);
  }
}

std::vector<Repeat> RepeatFinder::Find(size_t steps) const {
  std::vector<Repeat> repeats;
  std::unordered_map<uint64_t, size_t> last;
  last.reserve(hashes_.size());
  size_t begin = 0, gap = 0;  // current run, in which each window occurred `gap` before
  auto close = [&](size_t end) {
    size_t length = end - begin + gap + window_ - 1;
    if (gap > 0 && length >= steps * gap) repeats.push_back({begin - gap, gap, length});
  };
  for (size_t i = 0; i < hashes_.size(); ++i) {
    auto [it, is_new] = last.emplace(hashes_[i], i);
    size_t now = is_new ? 0 : i - it->second;
    it->second = i;
    if (now == gap) continue;
    close(i);
    begin = i;
    gap = now;
  }
  close(hashes_.size());
  return repeats;
}

bool RepeatFinder::Widen(size_t steps) {
  if (hashes_.size() <= window_ || window_ * (steps - 1) > hashes_.size()) return false;
  for (size_t i = 0; i + window_ < hashes_.size(); ++i) {
    Hasher hasher;
    hasher.Add(hashes_[i]);
    hasher.Add(hashes_[i + window_]);
    hashes_[i] = hasher.digest();
  }
  hashes_.resize(hashes_.size() - window_);
  window_ *= 2;
  return true;
}

}  // namespace tokamak
