// Loop-invariant code motion: values that the body recomputes from loop-invariant operands in every
// iteration are computed before the loop and carried. By cost: a value is carried if reading it
// costs no more than reading the values it is computed from, or if computing it is more than
// elementwise math. So a broadcast or an iota is never materialized, and a view (reshape, slice) of
// a carried array stays a view.
//
//   body: y = tanh(w), z = dot(x, transpose(w))    tanh(w), transpose(w) move out: w is invariant
//
// Bodies of inner loops come first, so a value leaves all possible loops in one run.

#include <algorithm>

#include <fmt/format.h>

#include "analysis/effects.h"
#include "analysis/loops.h"
#include "passes/passes.h"
#include "rewrite/bodies.h"
#include "rewrite/editor.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

// Free where it is read: an index map, or a value without operands.
bool IsView(const Instr& instr) {
  switch (instr.op()) {
    case Op::kConstant:
    case Op::kIota:
    case Op::kBroadcast:
    case Op::kReshape:
    case Op::kBitcast:
    case Op::kBitcastConvert:
    case Op::kSlice:
    case Op::kReverse:
    case Op::kCopy:
    case Op::kTuple:
      return true;
    default:
      return false;
  }
}

// More than index maps and elementwise math: always worth computing once.
bool IsHeavy(const Instr& instr) {
  constexpr uint16_t kKinds = kReduction | kContraction | kRandom | kOpaqueMath;
  if (instr.op() == Op::kGetTupleElement) return true;  // an element of an op with several results
  return (instr.info().traits & kKinds) != 0 || instr.op() == Op::kCustomCall;
}

// Whether it may be computed before the loop with the same bits, whatever the loop does. Custom
// calls are excluded if the loop may have zero iterations.
bool IsMovable(const Instr& instr, bool runs) {
  if (!IsPlain(instr) || IsPinned(instr)) return false;
  if (instr.op() == Op::kCustomCall && !runs) return false;
  return !instr.shape().HasDynamicDims() && !instr.shape().IsToken();
}

int64_t BytesOfArray(const Instr& instr) {
  return instr.shape().IsStaticArray() ? instr.shape().ByteSize() : 0;
}

// Bytes to read for the value if it is not carried; at most its own size.
int64_t SourceBytes(const Instr& instr, const InstrMap<int64_t>& sources) {
  if (instr.op() == Op::kConstant)
    return instr.attrs<ConstantAttrs>().literal.is_splat() ? 0 : BytesOfArray(instr);
  if (instr.op() == Op::kParameter || IsHeavy(instr)) return BytesOfArray(instr);
  int64_t sum = 0;
  for (const Instr* operand : instr.operands()) sum += sources[operand];
  return std::min(sum, BytesOfArray(instr));
}

class InvariantHoister {
 public:
  InvariantHoister(Module& module, PassContext& context) : context_(context), counts_(module) {}

  Changed Run(Computation& computation) {
    std::vector<Instr*> loops;
    for (Instr* instr : computation.PostOrder())
      if (instr->op() == Op::kWhile) loops.push_back(instr);
    if (loops.empty()) return Changed::kNo;
    ProgramOrder program_order(computation);
    Changed changed = Changed::kNo;
    for (Instr* instr : loops) changed |= Hoist(instr, program_order);
    program_order.Finish();
    return changed;
  }

 private:
  Changed Hoist(Instr* instr, ProgramOrder& program_order) {
    std::optional<WhileLoop> loop = LoopOf(instr);
    if (!loop || IsPinned(*instr) || !loop->body->results.empty()) return Changed::kNo;
    if (!(loop->body->root()->shape() == instr->shape())) return Changed::kNo;
    std::vector<Instr*> chosen = Choose(*loop, true);
    if (chosen.empty()) return Changed::kNo;
    counts_.Own(instr, 0);
    Computation* body = loop->body;
    if (counts_.Own(instr, 1) != body) chosen = Choose(*LoopOf(instr), false);
    Move(*LoopOf(instr), chosen, program_order);
    return Changed::kYes;
  }

  // The invariant instructions of the body to carry, in program order.
  std::vector<Instr*> Choose(const WhileLoop& loop, bool records) {
    std::vector<Instr*> order = loop.body->PostOrder();
    InstrMap<char> invariant(*loop.body, 0);
    InstrMap<int64_t> sources(*loop.body, 0);
    std::optional<uint64_t> trip_count = TripCount(loop);
    bool runs = trip_count.value_or(0) > 0;
    for (const Instr* instr : order) {
      if (std::optional<size_t> number = ParameterNumber(instr)) {
        invariant[instr] = loop.IsInvariant(*number);
      } else {
        bool all = IsMovable(*instr, runs);
        for (const Instr* operand : instr->operands()) all = all && invariant[operand] != 0;
        invariant[instr] = all;
      }
      if (invariant[instr] != 0) sources[instr] = SourceBytes(*instr, sources);
    }
    InstrMap<char> needed(*loop.body, 0);
    needed[loop.body->root()] = 1;
    std::vector<Instr*> chosen;
    int64_t grown = 0;
    for (size_t i = order.size(); i-- > 0;) {  // users first
      Instr* instr = order[i];
      if (invariant[instr] != 0 && needed[instr] == 0) continue;
      if (invariant[instr] != 0 && Pays(*instr, sources) && Fits(*instr, grown, records)) {
        chosen.push_back(instr);
        continue;
      }
      for (const Instr* operand : instr->operands()) needed[operand] = 1;
    }
    std::reverse(chosen.begin(), chosen.end());
    return chosen;
  }

  static bool Pays(const Instr& instr, const InstrMap<int64_t>& sources) {
    if (instr.op() == Op::kParameter || IsView(instr) || !instr.shape().IsStaticArray())
      return false;
    if (IsHeavy(instr)) return true;
    int64_t read = 0;
    for (const Instr* operand : instr.operands()) read += sources[operand];
    return read > 0 && BytesOfArray(instr) <= read;
  }

  bool Fits(const Instr& instr, int64_t& grown, bool records) {
    int64_t bytes = BytesOfArray(instr);
    if (grown + bytes <= context_.limits.hoisted_bytes) {
      grown += bytes;
      return true;
    }
    if (records)
      context_.Rejected("hoist.too-large", instr, nullptr,
                        fmt::format("{} bytes, {} are carried already, {} at most", bytes, grown,
                                    context_.limits.hoisted_bytes));
    return false;
  }

  // Copies `chosen` and their operands before the loop.
  static std::vector<Instr*> CopyBefore(const WhileLoop& loop, const std::vector<Instr*>& chosen) {
    InstrMap<char> wanted(*loop.body, 0);
    for (const Instr* instr : chosen) wanted[instr] = 1;
    std::vector<Instr*> order = loop.body->PostOrder();
    for (size_t i = order.size(); i-- > 0;)
      if (wanted[order[i]] != 0)
        for (const Instr* operand : order[i]->operands()) wanted[operand] = 1;
    InstrMap<Instr*> copies(*loop.body, nullptr);
    for (const Instr* instr : order) {
      if (wanted[instr] == 0) continue;
      if (std::optional<size_t> number = ParameterNumber(instr)) {
        copies[instr] = loop.init(*number);
        continue;
      }
      std::vector<Instr*> operands;
      for (const Instr* operand : instr->operands()) operands.push_back(copies[operand]);
      copies[instr] = CopyTo(*loop.instr->parent(), *instr, std::move(operands));
    }
    std::vector<Instr*> moved;
    for (const Instr* instr : chosen) moved.push_back(copies[instr]);
    return moved;
  }

  void Move(const WhileLoop& loop, const std::vector<Instr*>& chosen, ProgramOrder& program_order) {
    std::vector<Instr*> moved = CopyBefore(loop, chosen);
    std::vector<Instr*> operands(loop.instr->operands().begin(), loop.instr->operands().end());
    size_t size = operands.size();
    Instr* root = loop.body->root();
    std::vector<Instr*> carried;
    for (size_t i = 0; i < chosen.size(); ++i) {
      Instr* instr = chosen[i];
      context_.Accepted(
          "hoist.invariant", *instr, moved[i],
          fmt::format("{} bytes, out of {}", BytesOfArray(*instr), loop.instr->name()));
      auto number = static_cast<int64_t>(operands.size());
      operands.push_back(moved[i]);
      loop.condition->AppendParameter(number, instr->shape(), instr->name())
          ->set_origins(instr->origins());
      Instr* parameter = loop.body->AppendParameter(number, instr->shape(), instr->name());
      carried.push_back(parameter);
      ReplaceBy(instr, parameter, true);
    }
    std::vector<Instr*> next;
    if (size == 1)
      next = {loop.body->root()};
    else
      next.assign(root->operands().begin(), root->operands().end());
    next.insert(next.end(), carried.begin(), carried.end());
    Shape shape = StateShape(*loop.instr, size, moved);
    Instr* new_root = Editor::Beside(*root).Make(Op::kTuple, shape, next);
    loop.body->set_root(new_root);
    if (size > 1) RemoveUnused(root);
    for (Instr* instr : chosen) RemoveUnused(instr);
    Widen(loop.instr, std::move(operands), shape, size, program_order);
  }

  static Shape StateShape(const Instr& loop, size_t size, const std::vector<Instr*>& moved) {
    std::vector<Shape> shapes;
    if (size == 1)
      shapes = {loop.shape()};
    else
      shapes = loop.shape().elements();
    for (const Instr* instr : moved) shapes.push_back(instr->shape());
    return Shape::Tuple(std::move(shapes));
  }

  // Replaces `old`, which carries `size` values, by a loop with more operands.
  static void Widen(Instr* old, std::vector<Instr*> operands, const Shape& shape, size_t size,
                    ProgramOrder& program_order) {
    Instr* wide = Editor::Beside(*old).Make(Op::kWhile, shape, std::move(operands));
    wide->set_name(old->name());
    wide->set_called({old->called().begin(), old->called().end()});
    if (old->has_extras()) wide->mutable_extras() = old->extras();
    std::vector<Instr*> users(old->users().begin(), old->users().end());
    for (Instr* user : users)
      if (size > 1 && user->op() == Op::kGetTupleElement) user->set_operand(0, wide);
    if (!old->users().empty() || old->parent()->root() == old) {
      Instr* whole = nullptr;
      std::vector<Instr*> elements;
      for (size_t i = 0; i < size; ++i) elements.push_back(ElementOf(wide, i));
      whole =
          size == 1 ? elements[0] : Editor::Beside(*old).Make(Op::kTuple, old->shape(), elements);
      old->parent()->ReplaceUses(old, whole);
    }
    old->parent()->Remove(old);
    program_order.Put(old, {wide});
  }

  PassContext& context_;
  CallCounts counts_;
};

}  // namespace

// Hoists values that the body computes with the same bits in every iteration, if profitable (see
// above), and carries them. The carried state of a loop grows by at most PassLimits::hoisted_bytes.
// Instructions with side effects stay; custom calls stay unless the loop is known to run.
Result<Changed> HoistInvariants(Module& module, PassContext& context) {
  if (!HasOp(module, Op::kWhile)) return Changed::kNo;
  InvariantHoister hoister(module, context);
  Changed changed = Changed::kNo;
  for (Computation* computation : module.CalleesFirst()) changed |= hoister.Run(*computation);
  return changed;
}

}  // namespace tokamak
