// Test case reduction by delta debugging. An edit (drop an effect, use an operand, use zeros, drop
// extras) is tried on many instructions at once, then on halves of them, down to single ones; a
// variant that still fails is kept. The edits repeat until none of them shrinks the module.
//
//   n instructions  ->  2 chunks of n/2  ->  4 of n/4  ->  ...  ->  n of 1     2 n attempts
//
// Instructions are identified by their number in program order over the module, which a copy shares
// with its original. A candidate must verify and fail like the original (ReduceClient). Edits of
// chunks must also lower the weight of the module, so that the reduction ends. Each attempt copies
// the module, but the client's test dominates.

#include "driver/testing/reduce.h"

#include <algorithm>
#include <cstring>

#include "ir/clone.h"
#include "ir/infer.h"

namespace tokamak {
namespace {

using Chosen = std::vector<Instr*>;

std::vector<Instr*> AllInstrs(const Module& module) {
  std::vector<Instr*> all;
  for (const auto& computation : module.computations()) {
    std::vector<Instr*> own = computation->Instrs();
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

bool HasZero(const Shape& shape) {
  return shape.IsStaticArray() && shape.quant() == nullptr;
}

// Appends zeros of the instruction's shape; for a tuple, a tuple of zeros.
Instr* AppendZero(Computation& computation, const Shape& shape) {
  if (shape.IsTuple()) {
    std::vector<Instr*> elements;
    for (const Shape& element : shape.elements()) {
      Instr* zero = AppendZero(computation, element);
      if (zero == nullptr) return nullptr;
      elements.push_back(zero);
    }
    return computation.Append(Op::kTuple, shape, std::move(elements));
  }
  if (!HasZero(shape)) return nullptr;
  auto width = static_cast<size_t>(BytesOf(shape.type()));
  Literal zero = Literal::Splat(shape.WithoutLayout(),
                                Bytes::FromVector(std::vector<std::byte>(width, std::byte{0})));
  return computation.Append(Op::kConstant, shape, {}, ConstantAttrs{std::move(zero)});
}

bool Replace(Instr* instr, Instr* by) {
  if (by == nullptr || by == instr) return false;
  Computation& computation = *instr->parent();
  computation.ReplaceUses(instr, by);
  if (computation.root() == instr) computation.set_root(by);
  return true;
}

// ---- the edits: each returns whether it changed anything

bool ToZero(Instr* instr) {
  if (instr->op() == Op::kConstant && instr->attrs<ConstantAttrs>().literal.is_splat())
    return false;
  if (instr->op() == Op::kTuple || instr->op() == Op::kParameter) return false;
  if (instr->users().empty() && instr->parent()->root() != instr) return false;
  return Replace(instr, AppendZero(*instr->parent(), instr->shape()));
}

bool ToOperand(Instr* instr) {
  if (instr->users().empty() && instr->parent()->root() != instr) return false;
  for (Instr* operand : instr->operands())
    if (Compatible(operand->shape(), instr->shape())) return Replace(instr, operand);
  return false;
}

bool DropExtras(Instr* instr) {
  if (!instr->has_extras() && instr->origins() == OriginId::kNone) return false;
  instr->set_origins(OriginId::kNone);
  if (instr->has_extras()) instr->mutable_extras() = {};
  return true;
}

// Removes instructions with an effect and without users: checks, prints, sends.
bool DropEffect(Instr* instr) {
  if (!instr->users().empty() || instr->parent()->root() == instr) return false;
  if (instr->op() == Op::kParameter || !instr->info().Is(kSideEffect)) return false;
  instr->parent()->Remove(instr);
  return true;
}

// ---- cleaning up

bool IsDead(const Instr* instr, const Computation& computation) {
  return instr->users().empty() && computation.root() != instr && instr->op() != Op::kParameter &&
         !instr->info().Is(kSideEffect);
}

void RemoveDead(Module& module) {
  for (const auto& computation : module.computations()) {
    std::vector<Instr*> instrs = computation->Instrs();
    for (auto it = instrs.rbegin(); it != instrs.rend(); ++it)
      if (IsDead(*it, *computation)) computation->Remove(*it);
  }
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<const Computation*> called;
    for (const Instr* instr : AllInstrs(module))
      called.insert(called.end(), instr->called().begin(), instr->called().end());
    for (const auto& computation : module.computations()) {
      bool used = std::find(called.begin(), called.end(), computation.get()) != called.end();
      if (used || computation.get() == module.entry()) continue;
      module.RemoveComputation(computation.get());
      changed = true;
      break;
    }
  }
}

void ForgetResults(Module& module) {
  module.entry()->results.clear();
  module.aliases.clear();
  module.entry_result_layout.reset();
}

class Reducer {
 public:
  Reducer(const Module& module, ReduceClient& client)
      : client_(client), best_(CloneModule(module)) {}

  std::unique_ptr<Module> Reduce() {
    size_t before = 0;
    do {
      before = Weight(*best_);
      DropResults();
      Chunks("drop effects", DropEffect);
      Chunks("use an operand", ToOperand);
      Chunks("use zeros", ToZero);
      Chunks("drop extras", DropExtras);
    } while (Weight(*best_) < before && !client_.OutOfTime());
    return std::move(best_);
  }

 private:
  static size_t Weight(const Module& module) {
    size_t weight = 0;
    for (const Instr* instr : AllInstrs(module)) {
      weight += 4 + instr->operand_count() + (instr->has_extras() ? 1 : 0);
      if (instr->op() == Op::kConstant)
        weight += instr->attrs<ConstantAttrs>().literal.data().size() > 16 ? 2 : 0;
    }
    return weight;
  }

  // The second copy closes the gaps that removed instructions leave, so that numbers are dense
  // again.
  bool Accept(const std::string& step, const Module& edited) {
    std::unique_ptr<Module> candidate = CloneModuleInOrder(edited);
    RemoveDead(*candidate);
    candidate = CloneModuleInOrder(*candidate);
    if (!VerifyModule(*candidate).ok() || !client_.Fails(*candidate)) return false;
    best_ = std::move(candidate);
    client_.Progress(step, AllInstrs(*best_).size());
    return true;
  }

  // Shrinks the result: to one element of a tuple, otherwise to an operand of the root.
  void DropResults() {
    for (bool changed = true; changed && !client_.OutOfTime();) {
      changed = false;
      Instr* root = best_->entry()->root();
      // After a change the root is destroyed with its module.
      for (size_t i = 0; !changed && i < root->operand_count(); ++i) {
        std::unique_ptr<Module> copy = CloneModule(*best_);
        Instr* copied = copy->entry()->root();
        copy->entry()->set_root(copied->operand(i));
        ForgetResults(*copy);
        changed = Accept("drop results", *copy);
      }
    }
  }

  template <typename Edit>
  void Chunks(const std::string& step, Edit edit) {
    for (size_t size = AllInstrs(*best_).size(); size > 0; size /= 2) {
      for (size_t begin = 0; begin < AllInstrs(*best_).size();) {
        if (client_.OutOfTime()) return;
        // After a success the same numbers refer to other instructions.
        if (!TryChunk(step, edit, begin, size)) begin += size;
      }
    }
  }

  template <typename Edit>
  bool TryChunk(const std::string& step, Edit edit, size_t begin, size_t size) {
    std::unique_ptr<Module> copy = CloneModule(*best_);
    std::vector<Instr*> all = AllInstrs(*copy);
    bool changed = false;
    for (size_t i = std::min(begin + size, all.size()); i-- > begin;)
      changed = edit(all[i]) || changed;
    if (!changed) return false;
    size_t weight = Weight(*best_);
    std::unique_ptr<Module> old = CloneModule(*best_);
    if (!Accept(step, *copy)) return false;
    if (Weight(*best_) < weight) return true;
    best_ = std::move(old);  // no smaller than before: the loop would not terminate
    return false;
  }

  ReduceClient& client_;
  std::unique_ptr<Module> best_;
};

}  // namespace

std::unique_ptr<Module> ReduceModule(const Module& module, ReduceClient& client) {
  if (module.entry() == nullptr || module.entry()->root() == nullptr) return CloneModule(module);
  return Reducer(module, client).Reduce();
}

}  // namespace tokamak
