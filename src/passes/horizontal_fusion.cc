#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "passes/passes.h"
#include "rewrite/fuse/fuser.h"

namespace tokamak {
namespace {

class HorizontalFuser : public fuse::Fuser {
 public:
  using Fuser::Fuser;

  // What feeds a pack may be packed in turn.
  Changed Run(Computation& computation) {
    constexpr int kMostRounds = 8;
    Changed changed = Changed::kNo;
    for (int round = 0; round < kMostRounds; ++round) {
      Changed once = Changed::kNo;
      std::vector<Instr*> order = computation.PostOrder();
      for (size_t i = order.size(); i-- > 0;)
        if (!order[i]->is_removed()) once |= PackOperands(*order[i], computation);
      changed |= once;
      if (once == Changed::kNo) break;
      computation.PutInOrder();
    }
    return changed;
  }

 private:
  // Kernels that only this consumer and the result need: none of them needs another.
  std::vector<Instr*> Candidates(const Instr& consumer, const Computation& computation) {
    std::vector<Instr*> kernels;
    std::unordered_set<const Instr*> seen;
    for (Instr* operand : consumer.operands()) {
      Instr* kernel = operand;
      if (kernel->op() == Op::kGetTupleElement) kernel = kernel->operand(0);
      if (!seen.insert(kernel).second || !fuse::MayEnd(*kernel)) continue;
      if (!IsOnlyFor(*kernel, consumer, computation)) continue;
      // What moves no data, or only repeats a number, is no launch.
      if (kernel->op() == Op::kReshape || kernel->op() == Op::kBitcast) continue;
      if (fuse::Judgement refused = judge_.MayBePacked(*kernel)) {
        records_.Refused(*refused, *kernel, &consumer);
        continue;
      }
      kernels.push_back(kernel);
    }
    return kernels;
  }

  static bool IsOnlyFor(const Instr& kernel, const Instr& consumer,
                        const Computation& computation) {
    auto is_end = [&](const Instr* user) {
      return user == &consumer || (user == computation.root() && user->op() == Op::kTuple);
    };
    if (&kernel == computation.root()) return false;
    return std::all_of(kernel.users().begin(), kernel.users().end(), [&](const Instr* user) {
      if (user->op() != Op::kGetTupleElement || !kernel.shape().IsTuple()) return is_end(user);
      return user != computation.root() &&
             std::all_of(user->users().begin(), user->users().end(), is_end);
    });
  }

  Changed PackOperands(const Instr& consumer, Computation& computation) {
    std::vector<Instr*> kernels = Candidates(consumer, computation);
    // Those that are alike stand together.
    std::stable_sort(kernels.begin(), kernels.end(), [](const Instr* a, const Instr* b) {
      return std::pair(fuse::ResultsOf(*a), TypeOf(*a)) <
             std::pair(fuse::ResultsOf(*b), TypeOf(*b));
    });
    Changed changed = Changed::kNo;
    for (size_t i = 0; i + 1 < kernels.size(); ++i) {
      fuse::Judgement refused = MayStandBeside(*kernels[i], *kernels[i + 1]);
      if (refused) {
        records_.Refused(*refused, *kernels[i + 1], kernels[i]);
        continue;
      }
      records_.Moved(FusionRule::kHorizontal, *kernels[i + 1], kernels[i],
                     "for " + LabelOf(consumer));
      kernels[i + 1] = editor_.Join(kernels[i], kernels[i + 1], true);
      changed = Changed::kYes;
    }
    return changed;
  }

  static ElementType TypeOf(const Instr& instr) {
    return instr.shape().IsTuple() ? instr.shape().elements()[0].type() : instr.shape().type();
  }

  // `pack` may hold several kernels already.
  fuse::Judgement MayStandBeside(const Instr& pack, const Instr& kernel) const {
    int64_t of_pack = fuse::ResultsOf(pack), results = fuse::ResultsOf(kernel);
    bool alike = TypeOf(pack) == TypeOf(kernel) &&
                 (fuse::IsHorizontal(pack) ? of_pack % results == 0 : of_pack == results);
    if (!alike && !judge_.IsLifted(FusionRule::kHorizontalAlike))
      return fuse::Refusal{FusionRule::kHorizontalAlike,
                           fmt::format("{} results of {} and {} of {}", of_pack,
                                       HloName(TypeOf(pack)), results, HloName(TypeOf(kernel)))};
    int64_t arguments = judge_.ArgumentsOf(pack, kernel, true);
    if (arguments > judge_.limits().fused_arguments && !judge_.IsLifted(FusionRule::kKernelSize))
      return fuse::Refusal{FusionRule::kKernelSize, fmt::format("{} arguments of {}", arguments,
                                                                judge_.limits().fused_arguments)};
    return std::nullopt;
  }
};

}  // namespace

// XLA's horizontal fusion: small kernels that feed one consumer, of whatever shapes, stand side by
// side in one fusion, which says so (frontend_attributes={fusion="horizontal"}).
Result<Changed> HorizontalFusion(Module& module, PassContext& context) {
  return fuse::FuseAll<HorizontalFuser>(module, context);
}

}  // namespace tokamak
