#include "fusion/constraints.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "analysis/running_computations.h"
#include "explain/decision.h"
#include "fusion/instr_predicates.h"
#include "support/near_names.h"

namespace tokamak {
namespace {

constexpr std::string_view kScopePrefix = "tokamak.";
constexpr std::string_view kScopes[] = {"tokamak.never_fuse", "tokamak.fuse",
                                        "tokamak.require_fused"};
constexpr std::string_view kFlags[] = {"--never-fuse=", "--fuse=", "--require-fused="};
// Similar names that an error message lists at most. Chosen: they fit on one line.
constexpr size_t kMaxSuggestions = 5;

const std::vector<std::string>& TextsOf(const ConstraintOptions& options, ConstraintKind kind) {
  return kind == ConstraintKind::kNeverFuse ? options.never_fuse
         : kind == ConstraintKind::kFuse    ? options.fuse
                                            : options.require_fused;
}

std::vector<std::string> SplitAtCommas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    if (!part.empty()) parts.emplace_back(part);
  }
  return parts;
}

// A source line, "train.py:12"; nullopt if the word has another form.
struct SourceLine {
  std::string_view file;
  int32_t line = 0;
};
std::optional<SourceLine> LineOf(std::string_view word) {
  size_t colon = word.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == word.size()) return {};
  SourceLine line{word.substr(0, colon), 0};
  const char* end = word.data() + word.size();
  auto read = std::from_chars(word.data() + colon + 1, end, line.line);
  if (read.ec != std::errc() || read.ptr != end || line.line < 0) return {};
  return line;
}

bool IsFile(std::string_view path, std::string_view asked) {
  return path == asked || (path.size() > asked.size() && path.ends_with(asked) &&
                           path[path.size() - asked.size() - 1] == '/');
}

// Calls look(frame) for the source lines of an instruction, including those of callers.
template <typename F>
void ForEachFrame(const OriginTable& table, const Instr& instr, F&& look) {
  for (const Origin* origin : table.Of(instr.origins()))
    for (FrameId id = origin->frame; id != FrameId::kNone; id = table.frame(id).caller)
      look(table.frame(id));
}

bool ComesFrom(const Module& module, const Instr& instr, std::string_view word) {
  std::optional<SourceLine> asked = LineOf(word);
  if (!asked) return false;
  bool found = false;
  ForEachFrame(module.origins(), instr, [&](const Frame& frame) {
    found |= frame.line == asked->line && IsFile(frame.file, asked->file);
  });
  return found || (instr.pos().line == static_cast<uint32_t>(asked->line) &&
                   IsFile(module.file, asked->file));
}

// "tokamak.fuse:@1.0": the first word of the second --fuse.
std::string MarkOf(ConstraintKind kind, size_t group, size_t word) {
  return std::string(kScopes[static_cast<size_t>(kind)]) + ":@" + std::to_string(group) + "." +
         std::to_string(word);
}

void Mark(Instr& instr, const std::string& name) {
  OriginTable& table = instr.parent()->module()->origins();
  Origin origin;
  origin.op_name = name;
  instr.set_origins(table.Merge(instr.origins(), table.Add(origin)));
}

void MarkAttributes(Instr& instr) {
  if (!instr.has_extras()) return;
  for (std::string_view scope : kScopes) {
    const AttrValue* value = Find(instr.extras().frontend_attributes, scope);
    const std::string* label = value == nullptr ? nullptr : value->As<std::string>();
    if (label != nullptr && *label != "false") Mark(instr, std::string(scope) + ":=" + *label);
  }
}

// The constraint in an op name: "jit(f)/jvp(tokamak.fuse:a)/add" has kind fuse and label "a".
struct ScopedConstraint {
  ConstraintKind kind{};
  std::string label;
};
std::vector<ScopedConstraint> ConstraintsNamedBy(std::string_view name) {
  std::vector<ScopedConstraint> all;
  for (size_t i = 0; i < std::size(kScopes); ++i) {
    size_t at = name.find(kScopes[i]);
    if (at == std::string_view::npos) continue;
    std::string_view rest = name.substr(at + kScopes[i].size());
    std::string label;
    if (rest.starts_with(':')) label = rest.substr(1, rest.find_first_of("/)") - 1);
    all.push_back({static_cast<ConstraintKind>(i), std::move(label)});
  }
  return all;
}

}  // namespace

void AttachConstraints(Module& module, const ConstraintOptions& options) {
  for (const auto& computation : module.computations()) {
    for (Instr* instr : computation->PostOrder()) {
      MarkAttributes(*instr);
      if (options.empty()) continue;
      for (ConstraintKind kind :
           {ConstraintKind::kNeverFuse, ConstraintKind::kFuse, ConstraintKind::kRequireFused}) {
        const std::vector<std::string>& groups = TextsOf(options, kind);
        for (size_t g = 0; g < groups.size(); ++g) {
          std::vector<std::string> parts = SplitAtCommas(groups[g]);
          for (size_t w = 0; w < parts.size(); ++w)
            // Only by name: the number in the label of an unnamed instruction changes during
            // passes.
            if (instr->name() == parts[w] || ComesFrom(module, *instr, parts[w]))
              Mark(*instr, MarkOf(kind, g, w));
        }
      }
    }
  }
}

class ConstraintParser {
 public:
  ConstraintParser(const Module& module, const ConstraintOptions& options)
      : module_(module), options_(options) {}

  Result<FusionConstraints> Run() {
    for (const Computation* computation : RunningComputations(module_))
      for (const Instr* instr : computation->PostOrder()) Look(*instr);
    for (ConstraintKind kind :
         {ConstraintKind::kNeverFuse, ConstraintKind::kFuse, ConstraintKind::kRequireFused}) {
      const std::vector<std::string>& groups = TextsOf(options_, kind);
      for (size_t g = 0; g < groups.size(); ++g) TOK_RETURN_IF_ERROR(AddGroup(kind, g, groups[g]));
    }
    for (auto& [key, members] : scoped_) AddScope(key, std::move(members));
    return std::move(constraints_);
  }

 private:
  // Kind, computation, label, and whether it belongs to the backward pass: a scope of the forward
  // pass constrains both, separately.
  using Key = std::tuple<ConstraintKind, const Computation*, std::string, bool>;

  void Look(const Instr& instr) {
    if (instr.op() == Op::kParameter || instr.op() == Op::kConstant) return;
    if (unconstrained_.contains(instr.origins())) return;
    bool is_constrained = false;
    for (const Origin* origin : module_.origins().Of(instr.origins())) {
      if (origin->op_name.find("tokamak.") == std::string::npos) continue;
      is_constrained = true;
      for (const ScopedConstraint& scoped : ConstraintsNamedBy(origin->op_name)) {
        if (scoped.label.starts_with('@')) {
          marked_[std::string(kScopes[static_cast<size_t>(scoped.kind)]) + ":" + scoped.label]
              .push_back(&instr);
        } else {
          bool backward = origin->op_name.find("transpose(") != std::string::npos;
          AddOnce(scoped_[{scoped.kind, instr.parent(), scoped.label, backward}], &instr);
        }
      }
    }
    if (!is_constrained) unconstrained_.insert(instr.origins());
  }

  static void AddOnce(std::vector<const Instr*>& list, const Instr* instr) {
    if (std::find(list.begin(), list.end(), instr) == list.end()) list.push_back(instr);
  }

  // The members that compute something, if any: free instructions may be in any kernel.
  static std::vector<const Instr*> WithoutFreeOnes(std::vector<const Instr*> members) {
    std::vector<const Instr*> solid;
    for (const Instr* member : members)
      if (!IsFreeToRecompute(*member)) solid.push_back(member);
    return solid.empty() ? members : solid;
  }

  Status AddGroup(ConstraintKind kind, size_t group, const std::string& text) {
    std::string source_text = std::string(kFlags[static_cast<size_t>(kind)]) + text;
    std::vector<std::string> parts = SplitAtCommas(text);
    if (parts.empty())
      return MakeError(ErrorCode::kOptionValue,
                       source_text + ": expected instruction names or source lines");
    std::map<const Computation*, std::vector<const Instr*>> members;
    std::map<const Computation*, size_t> words;
    for (size_t w = 0; w < parts.size(); ++w) {
      std::vector<const Instr*> found = marked_[MarkOf(kind, group, w)];
      if (found.empty()) found = NamedNow(parts[w]);
      if (found.empty()) return NamesNothing(source_text, parts[w]);
      std::set<const Computation*> seen;
      for (const Instr* instr : WithoutFreeOnes(std::move(found))) {
        AddOnce(members[instr->parent()], instr);
        if (seen.insert(instr->parent()).second) ++words[instr->parent()];
      }
    }
    bool added = false;
    for (auto& [computation, list] : members) {
      // All words of a group must name instructions of the same computation.
      if (kind != ConstraintKind::kNeverFuse && words[computation] < parts.size()) continue;
      constraints_.Add({kind, source_text, std::move(list)});
      added = true;
    }
    if (added) return Ok();
    return MakeError(
        ErrorCode::kOptionValue,
        source_text +
            ": the instructions are not all in one computation (a loop body is a separate one)");
  }

  std::vector<const Instr*> NamedNow(std::string_view word) const {
    std::vector<const Instr*> found;
    for (const Computation* computation : RunningComputations(module_))
      for (const Instr* instr : computation->PostOrder())
        if (instr->op() != Op::kParameter &&
            (LabelOf(*instr) == word || ComesFrom(module_, *instr, word)))
          found.push_back(instr);
    return found;
  }

  Error NamesNothing(const std::string& source_text, const std::string& word) const {
    std::optional<SourceLine> asked = LineOf(word);
    std::vector<std::string> nearest = asked ? NearestLines(*asked) : NearestInstrs(word);
    std::string text = source_text + ": no instruction " +
                       (asked ? "comes from line " : "has the name ") + "'" + word + "'";
    for (size_t i = 0; i < std::min(nearest.size(), kMaxSuggestions); ++i)
      text += (i == 0 ? "; did you mean " : ", ") + nearest[i];
    if (!nearest.empty()) text += "?";
    return MakeError(ErrorCode::kOptionValue, text, {.file = module_.file});
  }

  std::vector<std::string> NearestInstrs(std::string_view word) const {
    std::set<std::string> names;
    for (const Computation* computation : RunningComputations(module_))
      for (const Instr* instr : computation->PostOrder())
        if (instr->op() != Op::kParameter) names.insert(LabelOf(*instr));
    std::vector<std::string> nearest;
    for (std::string_view name : NearestNames(word, {names.begin(), names.end()}, kMaxSuggestions))
      nearest.emplace_back(name);
    return nearest;
  }

  // Lines of that file, the nearest first; then lines of other files.
  std::vector<std::string> NearestLines(const SourceLine& asked) const {
    std::set<std::pair<int64_t, std::string>> lines;
    // Distance added for lines of other files: more than any line number.
    constexpr int64_t kOther = int64_t{std::numeric_limits<int32_t>::max()} + 1;
    for (const Computation* computation : RunningComputations(module_))
      for (const Instr* instr : computation->PostOrder())
        ForEachFrame(module_.origins(), *instr, [&](const Frame& frame) {
          int64_t far = frame.line > asked.line ? frame.line - asked.line : asked.line - frame.line;
          far += IsFile(frame.file, asked.file) ? 0 : kOther;
          lines.emplace(far, frame.file + ":" + std::to_string(frame.line));
        });
    std::vector<std::string> nearest;
    for (const auto& [far, line] : lines) nearest.push_back(line);
    return nearest;
  }

  void AddScope(const Key& key, std::vector<const Instr*> members) {
    const auto& [kind, computation, label, backward] = key;
    bool of_attribute = label.starts_with('=');
    std::string source_text =
        std::string(kScopes[static_cast<size_t>(kind)].substr(kScopePrefix.size()));
    if (!label.empty()) source_text += " '" + label.substr(of_attribute ? 1 : 0) + "'";
    members = WithoutFreeOnes(std::move(members));
    if (of_attribute && kind == ConstraintKind::kNeverFuse) {  // one constraint per instruction
      for (const Instr* member : members) constraints_.Add({kind, source_text, {member}});
    } else if (of_attribute) {
      constraints_.Add({kind, source_text, std::move(members)});
    } else {
      for (std::vector<const Instr*>& part : Connected(members))
        constraints_.Add({kind, source_text, std::move(part)});
    }
  }

  // A scoped function may be called several times; each call is a separate constraint. Members that
  // are connected by values or by common operands belong to one call.
  static std::vector<std::vector<const Instr*>> Connected(
      const std::vector<const Instr*>& members) {
    std::unordered_map<const Instr*, size_t> owner;  // by member or operand
    std::vector<size_t> part(members.size());
    auto root = [&](size_t i) {
      while (part[i] != i) i = part[i];
      return i;
    };
    auto claim = [&](const Instr* value, size_t i) {
      auto [at, is_new] = owner.try_emplace(value, i);
      if (!is_new) part[root(i)] = root(at->second);
    };
    for (size_t i = 0; i < members.size(); ++i) part[i] = i;
    for (size_t i = 0; i < members.size(); ++i) {
      claim(members[i], i);
      for (const Instr* operand : members[i]->operands()) {
        while (IsFreeToRecompute(*operand) && operand->operand_count() == 1)
          operand = operand->operand(0);
        bool is_small = operand->shape().IsArray() && operand->shape().rank() == 0;
        if (operand->op() != Op::kConstant && !is_small) claim(operand, i);
      }
    }
    std::map<size_t, std::vector<const Instr*>> parts;
    for (size_t i = 0; i < members.size(); ++i) parts[root(i)].push_back(members[i]);
    std::vector<std::vector<const Instr*>> lists;
    for (auto& [first, list] : parts) lists.push_back(std::move(list));
    return lists;
  }

  const Module& module_;
  const ConstraintOptions& options_;
  std::unordered_map<std::string, std::vector<const Instr*>> marked_;
  std::map<Key, std::vector<const Instr*>> scoped_;
  std::unordered_set<OriginId> unconstrained_;  // origin sets without constraints
  FusionConstraints constraints_;
};

Result<FusionConstraints> FusionConstraints::Read(const Module& module,
                                                  const ConstraintOptions& options) {
  return ConstraintParser(module, options).Run();
}

void FusionConstraints::Add(FusionConstraint constraint) {
  if (constraint.kind == ConstraintKind::kNeverFuse)
    for (const Instr* member : constraint.members)
      never_fuse_of_[member] = static_cast<int>(constraints_.size());
  constraints_.push_back(std::move(constraint));
}

std::vector<const FusionConstraint*> FusionConstraints::FuseConstraintsIn(
    const Computation& computation) const {
  std::vector<const FusionConstraint*> found;
  for (const FusionConstraint& constraint : constraints_)
    if (constraint.kind != ConstraintKind::kNeverFuse &&
        constraint.members[0]->parent() == &computation)
      found.push_back(&constraint);
  return found;
}

int FusionConstraints::NeverFuseConstraintOf(const Instr& instr) const {
  auto found = never_fuse_of_.find(&instr);
  return found == never_fuse_of_.end() ? -1 : found->second;
}

bool FusionConstraints::HasNeverFuseIn(const Computation& computation) const {
  return std::any_of(constraints_.begin(), constraints_.end(),
                     [&](const FusionConstraint& constraint) {
                       return constraint.kind == ConstraintKind::kNeverFuse &&
                              constraint.members[0]->parent() == &computation;
                     });
}

bool ViolatesNeverFuse(const FusedRegion& region, const FusionConstraints& constraints) {
  // No instruction seen yet; -1 is the class of unconstrained ones.
  constexpr int kUnset = -2;
  int of_all = kUnset;
  for (const Instr* instr : region.instrs) {
    int own = constraints.NeverFuseConstraintOf(*instr);
    if (own < 0 && IsFreeToRecompute(*instr)) continue;
    if (of_all != kUnset && own != of_all) return true;
    of_all = own;
  }
  return false;
}

bool ComputesAll(const FusedRegion& region, const FusionConstraint& constraint) {
  return std::all_of(
      constraint.members.begin(), constraint.members.end(), [&](const Instr* member) {
        return std::find(region.instrs.begin(), region.instrs.end(), member) != region.instrs.end();
      });
}

}  // namespace tokamak
