// lint.large-constant: an array of the user is a constant of the program.
// lint.stored-mask: a mask that depends on indices only is stored.
// lint.stored-transpose: a transposed array beside a product is stored.
// lint.upcast: an array is stored in a wider type than it was computed in.

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "analysis/loops.h"
#include "driver/report/lint/lint_subject.h"
#include "driver/report/write.h"

namespace tokamak {
namespace {

// Bytes of one constant from which a program is slow to trace, lower and cache (chosen: the text of
// a megabyte of f32 has two).
constexpr int64_t kMinLargeConstant = int64_t{1} << 20;
// Bytes of a stored array that is worth a finding (chosen: less stays in the caches of any target).
constexpr int64_t kMinStoredBytes = int64_t{1} << 18;

// ---- constants

void LookAtConstants(LintSubject& subject) {
  for (const auto& computation : subject.written().computations())
    for (const Instr* instr : computation->Instrs()) {
      if (instr->op() != Op::kConstant || !instr->shape().IsArray()) continue;
      const Literal& literal = instr->attrs<ConstantAttrs>().literal;
      auto bytes = static_cast<int64_t>(literal.data().size());
      if (literal.is_splat() || bytes < kMinLargeConstant) continue;
      std::vector<const Instr*> at = {instr};
      for (const Instr* user : instr->users()) at.push_back(user);
      subject.Add({.rule = "lint.large-constant",
                   .lines = LintLinesOf(at),
                   .text = fmt::format("an array of {} is a constant of the program, {}: it is "
                                       "written, hashed and compiled with it; pass it as an "
                                       "argument, or compute it inside",
                                       BytesText(bytes), ToString(instr->shape()))});
    }
}

// ---- stored values

// Whether values are computed from indices and constants only.
class IndexOnly {
 public:
  bool Of(const Instr* value) {
    auto [at, is_new] = known_.try_emplace(value->parent());
    if (is_new) Fill(*value->parent(), at->second);
    return at->second.contains(value);
  }

 private:
  using Values = std::unordered_set<const Instr*>;

  static void Fill(const Computation& computation, Values& values) {
    for (const Instr* value : computation.PostOrder()) {
      bool is = false;
      if (value->op() == Op::kIota) {
        is = true;
      } else if (value->op() == Op::kConstant) {
        is = value->shape().IsArray();
      } else if (value->called().empty() && value->operand_count() > 0 &&
                 (value->info().Is(kElementwise) || value->info().Is(kDataMovement))) {
        is = std::all_of(value->operands().begin(), value->operands().end(),
                         [&](const Instr* operand) { return values.contains(operand); });
      }
      if (is) values.insert(value);
    }
  }

  std::unordered_map<const Computation*, Values> known_;
};

// Whether an array has two large dimensions and the value compares indices: not a table of
// positions.
bool IsMask(const Instr& value) {
  int64_t large = 0;
  for (int64_t size : value.shape().dims()) large += size > 1 ? 1 : 0;
  if (large < 2) return false;
  const Instr* from = LintSource(&value);
  return from->op() == Op::kCompare || from->op() == Op::kSelect || from->op() == Op::kAnd ||
         from->op() == Op::kOr;
}

bool IsBesideProduct(const Instr& transpose) {
  auto is_product = [](const Instr* value) {
    return value->op() == Op::kDot || value->op() == Op::kConvolution;
  };
  auto renamed = [](const Instr* value) {
    while (value->users().size() == 1 &&
           (value->users()[0]->op() == Op::kReshape || value->users()[0]->op() == Op::kBitcast ||
            value->users()[0]->op() == Op::kConvert))
      value = value->users()[0];
    return value;
  };
  if (is_product(LintSource(transpose.operand(0)))) return true;
  const Instr* value = renamed(&transpose);
  return std::any_of(value->users().begin(), value->users().end(), [&](Instr* user) {
    if (is_product(user)) return true;
    // A loop that carries it unchanged.
    std::optional<WhileLoop> loop = LoopOf(user);
    for (size_t i = 0; loop && i < loop->size(); ++i) {
      const Instr* inside = loop->in_body(i);
      if (loop->init(i) == value && loop->IsInvariant(i) &&
          std::any_of(inside->users().begin(), inside->users().end(), is_product))
        return true;
    }
    return false;
  });
}

// Whether the user wrote the transpose: not the compiler, not the gradient of a product, and not
// jnp.einsum, whose name is "bsd,de->sbe".
bool IsOfUser(const Instr& transpose) {
  for (const Origin* origin : transpose.parent()->module()->origins().Of(transpose.origins()))
    if (origin->op_name.ends_with("/transpose") &&
        origin->op_name.find("transpose(") == std::string::npos &&
        origin->op_name.find("->") == std::string::npos)
      return true;
  return false;
}

// Whether the transpose moves elements: it does more than leave out dimensions of one element.
bool MovesElements(const Instr& transpose) {
  int64_t last = -1;
  const Dims& from = transpose.operand(0)->shape().dims();
  for (int64_t dim : transpose.attrs<DimensionsAttrs>().dimensions) {
    if (from[static_cast<size_t>(dim)] == 1) continue;
    if (dim < last) return true;
    last = dim;
  }
  return false;
}

int BitsOf(const Instr& value) {
  return InfoOf(value.shape().type()).bits;
}

bool IsRootOrResult(const Instr& value) {
  const Instr* root = value.parent()->root();
  if (&value == root) return true;
  return std::any_of(value.users().begin(), value.users().end(),
                     [&](const Instr* user) { return user == root && user->op() == Op::kTuple; });
}

class StoredLints {
 public:
  explicit StoredLints(LintSubject& subject) : subject_(subject) {}

  void Run() {
    std::unordered_set<const Instr*> seen;
    for (const StepReport& step : subject_.report().steps)
      for (const Instr* made : step.made) {
        if (LintBytes(*made) < kMinStoredBytes) continue;
        if (seen.insert(made).second) LookAt(*made);
      }
  }

 private:
  void LookAt(const Instr& made) {
    if (IsRootOrResult(made)) return;  // asked for
    if (IsMask(made) && index_only_.Of(&made)) return AddMask(made);
    if (made.op() == Op::kTranspose && IsOfUser(made) && MovesElements(made) &&
        IsBesideProduct(made))
      return AddTranspose(made);
    if (made.op() == Op::kConvert) LookAtConvert(made);
  }

  void AddMask(const Instr& mask) {
    subject_.Add({.rule = "lint.stored-mask",
                  .lines = LintLinesOf({&mask}),
                  .us = subject_.ClaimTraffic(subject_.TrafficOf(mask), LintBytes(mask)),
                  .text = fmt::format("a mask of {} that depends on indices only is stored, {}: "
                                      "compare the indices where it is used",
                                      BytesText(LintBytes(mask)), ToString(mask.shape()))});
  }

  void AddTranspose(const Instr& transpose) {
    const LintSubject::Traffic& traffic = subject_.TrafficOf(transpose);
    if (traffic.readers == 0) return;
    subject_.Add({.rule = "lint.stored-transpose",
                  .lines = LintLinesOf({&transpose}),
                  .us = subject_.ClaimTraffic(traffic, LintBytes(transpose)),
                  .text = fmt::format("a transposed array of {} beside a product is stored: name "
                                      "the dimensions in jnp.einsum, so that the product reads or "
                                      "writes them in that order",
                                      BytesText(LintBytes(transpose)))});
  }

  // A wider copy of an array that other steps read.
  void LookAtConvert(const Instr& convert) {
    const Instr& from = *convert.operand(0);
    ElementType type = from.shape().type(), wide = convert.shape().type();
    if (!IsReal(type) || !IsReal(wide) || BitsOf(from) >= BitsOf(convert)) return;
    const LintSubject::Traffic& traffic = subject_.TrafficOf(convert);
    if (traffic.readers == 0) return;
    double share = 1 - static_cast<double>(BitsOf(from)) / static_cast<double>(BitsOf(convert));
    subject_.Add({.rule = "lint.upcast",
                  .lines = LintLinesOf({&convert}),
                  .us = subject_.ClaimTraffic(traffic, LintBytes(convert), share),
                  .text = fmt::format("{} of {} are stored as {}, {}: keep {} until the operation "
                                      "that needs more, or give that operation "
                                      "preferred_element_type",
                                      BytesText(LintBytes(convert)), HloName(type), HloName(wide),
                                      ToString(convert.shape()), HloName(type)),
                  .fix = {.kind = "dtype", .text = std::string(HloName(type))}});
  }

  LintSubject& subject_;
  IndexOnly index_only_;
};

// Notes about masks and transposes of the written program that no step stores.
void AddAvoidedStores(LintSubject& subject) {
  IndexOnly index_only;
  auto add = [&](const Instr& instr, const char* rule, const char* what) {
    if (subject.StepsOf(instr).empty() || subject.StoresLike(instr)) return;
    subject.AddAvoided(rule, LintLinesOf({&instr}),
                       fmt::format("{} of {} is never stored", what, BytesText(LintBytes(instr))),
                       subject.UsOfBytes(2 * LintBytes(instr)));
  };
  for (const auto& computation : subject.written().computations())
    for (const Instr* instr : computation->Instrs()) {
      if (LintBytes(*instr) < kMinStoredBytes) continue;
      if (instr->op() == Op::kTranspose && IsOfUser(*instr) && MovesElements(*instr) &&
          IsBesideProduct(*instr))
        add(*instr, "lint.stored-transpose", "the transposed array");
      bool is_mask = instr->op() == Op::kCompare || instr->op() == Op::kSelect;
      // Not a part of another mask.
      if (is_mask && IsMask(*instr) && index_only.Of(instr) &&
          std::none_of(instr->users().begin(), instr->users().end(), [&](const Instr* user) {
            return user->info().Is(kElementwise) && index_only.Of(user);
          }))
        add(*instr, "lint.stored-mask", "the mask");
    }
}

}  // namespace

void LintStoredValues(LintSubject& subject) {
  StoredLints(subject).Run();
  if (subject.has_written()) AddAvoidedStores(subject);
}

void LintConstants(LintSubject& subject) {
  if (subject.has_written()) LookAtConstants(subject);
}

}  // namespace tokamak
