// Recognizes Threefry2x32 and replaces it by one op. JAX lowers random bits to about 150 additions,
// shifts and xors on 32-bit words (or to a loop of five groups of rounds), or to a custom call on
// GPUs. All of these hide from later passes that random bits are a function of a key and a counter
// that costs 130 operations and no memory traffic, and can be recomputed anywhere.
//
// Words are compared by what they compute (analysis/word_terms.h). The match is therefore
// independent of how the program spells a rotation, of the order of additions, of constant folding
// and inlining, and of where scalar keys are broadcast. Names are ignored, except for custom calls.
//
//   pair   = u64[n] threefry2x32(k0, k1, x0, x1)
//   first  = u32[n] convert(shift-right-logical(pair, 32))
//   second = u32[n] convert(pair)

#include <algorithm>
#include <array>
#include <unordered_map>

#include <fmt/format.h>

#include "analysis/effects.h"
#include "analysis/threefry.h"
#include "analysis/word_eval.h"
#include "passes/passes.h"
#include "rewrite/editor.h"
#include "rewrite/replace.h"

namespace tokamak {
namespace {

constexpr uint32_t kMaxMadeWeight = 24;  // term size limit for a key or counter that must be
                                         // rebuilt (chosen)
constexpr int kPartialRounds = 4;        // fewer matched rounds are not reported as a near miss
                                         // (chosen)

// Instructions of a computation that computes the words of threefry.
class Words {
 public:
  Words(Computation& computation, PassContext& context, const Effects& effects,
        const WordWorks& works)
      : computation_(computation),
        context_(context),
        effects_(effects),
        eval_(terms_,
              context.limits.followed_instrs +
                  context.limits.followed_growth * static_cast<int64_t>(computation.size()),
              works),
        finder_(terms_) {}

  Changed Run() {
    std::vector<Instr*> order = computation_.PostOrder();
    found_.resize(computation_.id_limit());
    std::vector<const TermList*> operands;
    for (Instr* instr : order) {
      operands.clear();
      for (const Instr* operand : instr->operands()) operands.push_back(&TermsOf(operand));
      TermList terms = eval_.Of(*instr, operands);
      finder_.Update();
      if (IsWord(instr->shape()) && terms[0] != kNoTerm) terms[0] = Settle(instr, terms[0]);
      TermsOf(instr) = std::move(terms);
    }
    for (Instr* instr : unused_) RemoveUnused(instr);
    for (size_t i = replaced_.size(); i-- > 0;) RemoveWithLoop(replaced_[i]);
    if (replaced_.empty()) RecordPartial(order);
    return replaced_.empty() ? Changed::kNo : Changed::kYes;
  }

 private:
  // Also covers instructions created here.
  TermList& TermsOf(const Instr* instr) {
    auto id = static_cast<size_t>(instr->id());
    if (id >= found_.size()) found_.resize(computation_.id_limit());
    return found_[id];
  }

  // The term of the instruction. Replaces the instruction first if it is an output word of
  // threefry.
  WordTerm Settle(Instr* instr, WordTerm term) {
    int word = finder_.WordOf(term);
    if (word < 0) {
      instrs_.emplace(term, instr);
      return term;
    }
    Instr* pair = PairOf(static_cast<size_t>(word) / 2, *instr);
    if (pair == nullptr) return term;
    Instr* made = WordOf(pair, word % 2 == 0, *instr);
    if (!CanReplace(*instr, *made, true)) {
      context_.Rejected("random.extra-attributes", *instr, pair);
      unused_.push_back(made);
      return term;
    }
    MergeOrigins(pair, *instr);
    ReplaceBy(instr, made, true);
    context_.Accepted("random.threefry", *instr, pair);
    replaced_.push_back(instr);
    WordTerm leaf = terms_.Leaf(made, 0, made->shape().dims());
    instrs_.emplace(leaf, made);
    TermsOf(made) = {leaf};
    return leaf;
  }

  // The op for a match, created at its first output word. Null if the key or counter is not
  // available as an instruction.
  Instr* PairOf(size_t number, const Instr& like) {
    auto [it, is_new] = pairs_.try_emplace(number, nullptr);
    if (!is_new) return it->second;
    ThreefryFinder::Found found = finder_.all()[number];
    std::vector<Instr*> operands;
    for (WordTerm term : {found.k0, found.k1, found.x0, found.x1}) {
      operands.push_back(Make(term, like));
      if (operands.back() != nullptr) continue;
      context_.Rejected("random.operand-not-found", like);
      operands.pop_back();
      unused_.insert(unused_.end(), operands.begin(), operands.end());
      return nullptr;
    }
    Shape shape = Shape::Array(ElementType::kU64, like.shape().dims());
    it->second = Editor::Beside(like).Make(Op::kThreefry2x32, shape, std::move(operands));
    return it->second;
  }

  Instr* WordOf(Instr* pair, bool upper, const Instr& like) {
    Instr* whole = pair;
    if (upper) {
      Instr* by =
          Editor::Beside(like).Make(Op::kConstant, Shape::Scalar(ElementType::kU64), {},
                                    ConstantAttrs{Literal::ScalarInt(ElementType::kU64, 32)});
      whole = Editor::Beside(like).Make(Op::kShiftRightLogical, pair->shape(),
                                        {pair, BroadcastTo(by, pair->shape(), like)});
    }
    if (like.shape().type() == ElementType::kU32)
      return Editor::Beside(like).Make(Op::kConvert, like.shape(), {whole});
    Instr* word =
        Editor::Beside(like).Make(Op::kConvert, like.shape().WithType(ElementType::kU32), {whole});
    return Editor::Beside(like).Make(Op::kBitcastConvert, like.shape(), {word});
  }

  Instr* BroadcastTo(Instr* scalar, const Shape& shape, const Instr& like) {
    if (shape.IsScalar()) return scalar;
    return Editor::Beside(like).Make(Op::kBroadcast, shape, {scalar}, DimensionsAttrs{});
  }

  // An instruction with type u32 and the dimensions of `like` that computes the term.
  Instr* Make(WordTerm term, const Instr& like) {
    Shape shape = Shape::Array(ElementType::kU32, like.shape().dims());
    const TermNode node = terms_.node(term);
    if (node.kind == TermKind::kNumber) {
      auto bits = static_cast<int64_t>(node.number);
      Instr* number =
          Editor::Beside(like).Make(Op::kConstant, Shape::Scalar(ElementType::kU32), {},
                                    ConstantAttrs{Literal::ScalarInt(ElementType::kU32, bits)});
      return BroadcastTo(number, shape, like);
    }
    auto it = instrs_.find(term);
    if (it != instrs_.end() && it->second->shape().dims() == shape.dims()) {
      if (it->second->shape().type() == ElementType::kU32) return it->second;
      return Editor::Beside(like).Make(Op::kBitcastConvert, shape, {it->second});
    }
    if (node.weight > kMaxMadeWeight) return nullptr;
    switch (node.kind) {
      case TermKind::kLeaf:
        return MakeBroadcast(terms_.leaf(term), shape, like);
      case TermKind::kSum:
        return MakeSum(node, shape, like);
      case TermKind::kXor: {
        Instr* result = Make(terms_.Number(node.number), like);
        for (auto [part, times] : node.parts) result = Put(Op::kXor, result, Make(part, like));
        return result;
      }
      default:
        return nullptr;  // shifts must already exist in the program
    }
  }

  Instr* MakeSum(const TermNode& node, const Shape&, const Instr& like) {
    Instr* result = node.number == 0 ? nullptr : Make(terms_.Number(node.number), like);
    for (auto [part, times] : node.parts) {
      Instr* next = Make(part, like);
      if (next == nullptr) return nullptr;
      if (times != 1) next = Put(Op::kMultiply, next, Make(terms_.Number(times), like));
      result = result == nullptr ? next : Put(Op::kAdd, result, next);
    }
    return result;
  }

  static Instr* Put(Op op, Instr* x, Instr* y) {
    if (x == nullptr || y == nullptr) return nullptr;
    return Editor::Beside(*x).Make(op, x->shape(), {x, y});
  }

  // A broadcast of an instruction that the program has only unbroadcast, or with other dimensions.
  Instr* MakeBroadcast(const TermLeaf& leaf, const Shape& shape, const Instr& like) {
    const Instr* base = leaf.base;
    if (base == nullptr || base->parent() != &computation_ || !IsWord(base->shape()) ||
        base->is_removed())
      return nullptr;
    Dims dims, broadcast_dims;
    int last = -1;
    for (size_t i = 0; i < leaf.broadcast_map.sources.size(); ++i) {
      int source = leaf.broadcast_map.sources[i];
      if (source < 0) continue;
      if (source <= last) return nullptr;
      last = source;
      dims.push_back(base->shape().dim(static_cast<size_t>(source)));
      broadcast_dims.push_back(static_cast<int64_t>(i));
    }
    auto count = CheckedElementCount(dims);
    if (!count || *count != base->shape().ElementCount()) return nullptr;
    Instr* word = const_cast<Instr*>(base);
    if (word->shape().type() != ElementType::kU32)
      word = Editor::Beside(like).Make(
          Op::kBitcastConvert, Shape::Array(ElementType::kU32, word->shape().dims()), {word});
    if (word->shape().dims() != dims)
      word = Editor::Beside(like).Make(Op::kReshape, Shape::Array(ElementType::kU32, dims), {word});
    if (dims == shape.dims()) return word;
    return Editor::Beside(like).Make(Op::kBroadcast, shape, {word},
                                     DimensionsAttrs{broadcast_dims});
  }

  // Removes a loop together with its result word if that was the last user.
  void RemoveWithLoop(Instr* word) {
    if (word->is_removed()) return;
    Instr* source = word->op() == Op::kGetTupleElement ? word->operand(0) : nullptr;
    RemoveUnused(word);
    if (source == nullptr || source->is_removed() || !source->users().empty()) return;
    if (source->op() != Op::kWhile || source == computation_.root() || effects_.Of(*source)) return;
    if (source->is_control_predecessor()) return;
    std::vector<Instr*> operands(source->operands().begin(), source->operands().end());
    computation_.Remove(source);
    for (Instr* operand : operands) RemoveUnused(operand);
  }

  // Reports the number of rounds of the longest partial match.
  void RecordPartial(const std::vector<Instr*>& order) {
    ThreefryFinder::Partial partial = finder_.longest_partial();
    if (partial.rounds < kPartialRounds || !finder_.all().empty()) return;
    for (const Instr* instr : order) {
      if (TermsOf(instr).size() != 1 || TermsOf(instr)[0] != partial.last) continue;
      context_.Rejected("random.not-threefry", *instr, nullptr,
                        fmt::format("{} rounds of 20", partial.rounds));
      return;
    }
  }

  Computation& computation_;
  PassContext& context_;
  const Effects& effects_;
  WordTerms terms_;
  WordEval eval_;
  ThreefryFinder finder_;
  std::unordered_map<WordTerm, Instr*> instrs_;  // the first instruction that computes a term
  std::unordered_map<size_t, Instr*> pairs_;
  std::vector<TermList> found_;  // by id
  std::vector<Instr*> replaced_, unused_;
};

// The custom call that JAX emits on GPUs (jax_threefry_gpu_kernel_lowering): key and counter, one
// shape.
bool IsThreefryCall(const Instr& instr) {
  if (instr.op() != Op::kCustomCall || instr.operand_count() != 4) return false;
  const std::string& target = instr.attrs<CustomCallAttrs>().target;
  constexpr std::string_view kTargets[] = {"cu_threefry2x32", "cu_threefry2x32_ffi",
                                           "hip_threefry2x32", "hip_threefry2x32_ffi"};
  if (std::ranges::find(kTargets, target) == std::end(kTargets)) return false;
  if (instr.attrs<CustomCallAttrs>().has_side_effect || !instr.called().empty()) return false;
  const Shape& shape = instr.shape();
  if (!shape.IsTuple() || shape.elements().size() != 2) return false;
  Shape word = Shape::Array(ElementType::kU32, instr.operand(0)->shape().dims());
  auto fits = [&](const Shape& other) { return other.IsArray() && Compatible(other, word); };
  return std::ranges::all_of(shape.elements(), fits) &&
         std::ranges::all_of(instr.operands(), [&](const Instr* x) { return fits(x->shape()); });
}

Changed ReplaceCall(Instr* call, PassContext& context) {
  const Shape& first = call->shape().elements()[0];
  Shape whole = Shape::Array(ElementType::kU64, first.dims());
  std::vector<Instr*> operands(call->operands().begin(), call->operands().end());
  Instr* pair = Editor::Beside(*call).Make(Op::kThreefry2x32, whole, std::move(operands));
  Instr* by = Editor::Beside(*call).Make(Op::kConstant, Shape::Scalar(ElementType::kU64), {},
                                         ConstantAttrs{Literal::ScalarInt(ElementType::kU64, 32)});
  if (!whole.IsScalar())
    by = Editor::Beside(*call).Make(Op::kBroadcast, whole, {by}, DimensionsAttrs{});
  Instr* upper = Editor::Beside(*call).Make(Op::kShiftRightLogical, whole, {pair, by});
  std::vector<Instr*> words;
  words.push_back(Editor::Beside(*call).Make(Op::kConvert, first, {upper}));
  words.push_back(Editor::Beside(*call).Make(Op::kConvert, call->shape().elements()[1], {pair}));
  Instr* tuple = Editor::Beside(*call).Make(Op::kTuple, call->shape(), std::move(words));
  if (!CanReplace(*call, *tuple, true)) {
    context.Rejected("random.extra-attributes", *call);
    RemoveUnused(tuple);
    return Changed::kNo;
  }
  ReplaceBy(call, tuple, true);
  context.Accepted("random.threefry-call", *call, pair);
  call->parent()->Remove(call);
  return Changed::kYes;
}

}  // namespace

// Replaces all computations of threefry2x32 (all twenty rounds, in any spelling, unrolled or as a
// loop) and JAX's custom calls for it by the op. Other uses of intermediate values are kept. dce
// removes loops that become unused.
Result<Changed> RecognizeRandom(Module& module, PassContext& context) {
  Changed changed = Changed::kNo;
  Effects effects(module);
  WordWorks works;
  for (Computation* computation : module.CalleesFirst()) {
    if (computation->CountOf(Op::kCustomCall) > 0)
      for (Instr* instr : computation->Instrs())
        if (IsThreefryCall(*instr)) changed |= ReplaceCall(instr, context);
    uint8_t work = WordWorkOf(*computation, works);
    if (work == kAllWordWork) {
      changed |= Words(*computation, context, effects, works).Run();
      work = WordWorkOf(*computation, works);
    }
    works.emplace(computation, work);
  }
  return changed;
}

}  // namespace tokamak
