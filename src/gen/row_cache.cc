#include "gen/row_cache.h"

#include <algorithm>

#include "kernel/formulas.h"

namespace tokamak {
namespace {

// Operations, in units of ops.def, that storing and reloading a value costs. Chosen: the latency of
// the L1 cache, some 5 cycles, and the store; cheaper values are computed again.
constexpr int64_t kCacheFromCost = 6;

class RowCacheFinder {
 public:
  RowCacheFinder(const FusedRegion& region, const Dims& dims)
      : inside_(region.instrs.begin(), region.instrs.end()), dims_(dims) {}

  // Records the values that a loop computes and those it reuses from earlier loops.
  void Walk(const Instr& instr, RowLoop& loop, size_t number) {
    if (!IsComputed(instr) || !seen_.insert(&instr).second) return;
    auto first = computed_.find(&instr);
    if (first != computed_.end() && first->second < number && CostOf(instr) >= kCacheFromCost) {
      loop.read_from_cache.push_back(&instr);
      return;
    }
    computed_.emplace(&instr, number);
    for (const Instr* operand : instr.operands()) Walk(*operand, loop, number);
  }
  void NextLoop() { seen_.clear(); }
  size_t FirstLoop(const Instr& instr) const { return computed_.at(&instr); }

 private:
  // Whether a value is computed elementwise over the row.
  bool IsComputed(const Instr& instr) const {
    return inside_.contains(&instr) && instr.info().Is(kElementwise) && instr.shape().IsArray() &&
           instr.shape().dims() == dims_ && !IsComplex(instr.shape().type());
  }

  int64_t CostOf(const Instr& instr) const {
    std::unordered_set<const Instr*> counted;
    std::vector<const Instr*> open = {&instr};
    int64_t cost = 0;
    while (!open.empty() && cost < kCacheFromCost) {
      const Instr* next = open.back();
      open.pop_back();
      if (!IsComputed(*next) || !counted.insert(next).second) continue;
      cost += next->info().flops_per_element;
      for (const Instr* operand : next->operands()) open.push_back(operand);
    }
    return cost;
  }

  std::unordered_set<const Instr*> inside_, seen_;
  const Dims& dims_;
  std::unordered_map<const Instr*, size_t> computed_;  // the first loop that computes it
};

}  // namespace

void FindCachedValues(const FusedRegion& region, const Dims& dims, int64_t row_length,
                      int64_t max_bytes, std::vector<RowLoop>& loops) {
  RowCacheFinder finder(region, dims);
  int64_t bytes = 0;
  std::unordered_set<const Instr*> cached;
  for (size_t i = 0; i < loops.size(); ++i) {
    finder.NextLoop();
    for (const Instr* value : loops[i].evaluated) finder.Walk(*value, loops[i], i);
    std::erase_if(loops[i].read_from_cache, [&](const Instr* instr) {
      if (cached.contains(instr)) return false;
      int64_t more = row_length * BytesOf(ComputeType(instr->shape().type()));
      if (bytes + more > max_bytes) return true;
      bytes += more;
      cached.insert(instr);
      loops[finder.FirstLoop(*instr)].cached_here.push_back(instr);
      return false;
    });
  }
}

}  // namespace tokamak
