#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "rewrite/pass_functions.h"
#include "xla_rules/fuser.h"

namespace tokamak {
namespace {

class HorizontalFuser : public fuse::Fuser {
 public:
  using Fuser::Fuser;

  // Producers of a horizontal fusion may themselves be fused horizontally in the next iteration.
  Changed Run(Computation& computation) {
    Changed changed = Changed::kNo;
    for (int iteration = 0; iteration < fuse::kMaxFusionIterations; ++iteration) {
      Changed once = Changed::kNo;
      std::vector<Instr*> order = computation.PostOrder();
      for (size_t i = order.size(); i-- > 0;)
        if (!order[i]->is_removed()) once |= FuseOperands(*order[i], computation);
      changed |= once;
      if (once == Changed::kNo) break;
      computation.PutInOrder();
    }
    return changed;
  }

 private:
  // Kernels that only this consumer and the result use; none of them depends on another.
  std::vector<Instr*> Candidates(const Instr& consumer, const Computation& computation) {
    std::vector<Instr*> kernels;
    std::unordered_set<const Instr*> seen;
    for (Instr* operand : consumer.operands()) {
      Instr* kernel = operand;
      if (kernel->op() == Op::kGetTupleElement) kernel = kernel->operand(0);
      if (!seen.insert(kernel).second || !fuse::MayEnd(*kernel)) continue;
      if (!IsOnlyFor(*kernel, consumer, computation)) continue;
      // Ops that move no data need no launch.
      if (kernel->op() == Op::kReshape || kernel->op() == Op::kBitcast) continue;
      if (fuse::MaybeRejection rejection = rules_.MayFuseHorizontally(*kernel)) {
        records_.RecordRejection(*rejection, *kernel, &consumer);
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

  Changed FuseOperands(const Instr& consumer, Computation& computation) {
    std::vector<Instr*> kernels = Candidates(consumer, computation);
    // Similar kernels become adjacent.
    std::stable_sort(kernels.begin(), kernels.end(), [](const Instr* a, const Instr* b) {
      return std::pair(fuse::ResultsOf(*a), TypeOf(*a)) <
             std::pair(fuse::ResultsOf(*b), TypeOf(*b));
    });
    Changed changed = Changed::kNo;
    for (size_t i = 0; i + 1 < kernels.size(); ++i) {
      fuse::MaybeRejection rejection = MayStandBeside(*kernels[i], *kernels[i + 1]);
      if (rejection) {
        records_.RecordRejection(*rejection, *kernels[i + 1], kernels[i]);
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

  // `group` may already contain several kernels.
  fuse::MaybeRejection MayStandBeside(const Instr& group, const Instr& kernel) const {
    int64_t of_group = fuse::ResultsOf(group), results = fuse::ResultsOf(kernel);
    bool same_shape = TypeOf(group) == TypeOf(kernel) &&
                      (fuse::IsHorizontal(group) ? of_group % results == 0 : of_group == results);
    if (!same_shape && !rules_.IsLifted(FusionRule::kHorizontalSameShape))
      return fuse::Rejection{FusionRule::kHorizontalSameShape,
                             fmt::format("{} results of {} and {} of {}", of_group,
                                         HloName(TypeOf(group)), results, HloName(TypeOf(kernel)))};
    int64_t arguments = rules_.ArgumentsOf(group, kernel, true);
    if (arguments > rules_.limits().fused_arguments && !rules_.IsLifted(FusionRule::kKernelSize))
      return fuse::Rejection{FusionRule::kKernelSize, fmt::format("{} arguments of {}", arguments,
                                                                  rules_.limits().fused_arguments)};
    return std::nullopt;
  }
};

}  // namespace

// XLA's horizontal fusion: small kernels that feed one consumer, of any shapes, become one fusion,
// marked with frontend_attributes={fusion="horizontal"}.
Result<Changed> HorizontalFusion(Module& module, PassContext& context) {
  return fuse::FuseAll<HorizontalFuser>(module, context);
}

}  // namespace tokamak
