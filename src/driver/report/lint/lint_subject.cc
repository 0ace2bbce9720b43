#include "driver/report/lint/lint_subject.h"

#include <algorithm>

#include "analysis/loops.h"
#include "cost/rates.h"
#include "driver/report/xla_dump.h"
#include "support/hash.h"

namespace tokamak {
namespace {

std::vector<uint64_t> LintKeys(const Instr& instr) {
  // Of one instruction (chosen: bounds the time; rewrites merge hundreds into few).
  constexpr size_t kMostOrigins = 64;
  std::vector<uint64_t> keys;
  const Module& module = *instr.parent()->module();
  for (const Origin* origin : module.origins().Of(instr.origins())) {
    if (keys.size() == kMostOrigins) break;
    Hasher hasher;
    hasher.Add(std::string_view(origin->op_name));
    if (origin->frame != FrameId::kNone) {
      const Frame& frame = module.origins().frame(origin->frame);
      hasher.Add(std::string_view(frame.file));
      hasher.Add(static_cast<uint64_t>(frame.line));
      hasher.Add(static_cast<uint64_t>(frame.column));
    }
    keys.push_back(hasher.digest());
  }
  if (keys.empty() && instr.pos().line > 0) {
    Hasher hasher;
    hasher.Add(static_cast<uint64_t>(instr.pos().line));
    hasher.Add(static_cast<uint64_t>(instr.pos().column));
    keys.push_back(hasher.digest());
  }
  return keys;
}

template <typename T>
void AddNew(std::vector<T>& to, const T& one) {
  if (std::find(to.begin(), to.end(), one) == to.end()) to.push_back(one);
}

bool HasSourceLine(const Instr& instr) {
  for (const Origin* origin : instr.parent()->module()->origins().Of(instr.origins()))
    if (origin->frame != FrameId::kNone) return true;
  return false;
}

bool IsLintRename(Op op) {
  switch (op) {
    case Op::kReshape:
    case Op::kBroadcast:
    case Op::kConvert:
    case Op::kCopy:
    case Op::kTranspose:
    case Op::kBitcast:
      return true;
    default:
      return false;
  }
}

}  // namespace

LintSubject::LintSubject(const CompileReport& report, const Module* written, const Module* folded)
    : report_(report),
      written_(written != nullptr ? written : &report.module()),
      folded_(folded != nullptr ? folded : written_) {
  lints_.call_us = report.totals.us;
  for (size_t i = 0; i < report.steps.size(); ++i) {
    const StepReport& step = report.steps[i];
    unclaimed_.push_back(step.us());
    for (const Instr* instr : InstrsOf(step))
      for (uint64_t key : KeysOf(*instr))
        if (std::vector<size_t>& steps = steps_of_[key]; steps.empty() || steps.back() != i)
          steps.push_back(i);
    for (const Instr* made : step.made) {
      Traffic& traffic = traffic_[made];
      traffic.is_stored = true;
      traffic.steps.insert(traffic.steps.begin(), i);
    }
    for (const Instr* read : step.read) {
      Traffic& traffic = traffic_[read];
      traffic.steps.push_back(i);
      ++traffic.readers;
    }
  }
  AddLoopReaders();
  for (const auto& computation : compiled().computations())
    for (const Instr* instr : computation->Instrs())
      for (uint64_t key : KeysOf(*instr)) compiled_of_[key].push_back(instr);
}

const std::vector<uint64_t>& LintSubject::KeysOf(const Instr& instr) const {
  auto [at, is_new] = keys_.try_emplace(&instr);
  if (is_new) at->second = LintKeys(instr);
  return at->second;
}

// Steps of a loop's body read what is carried unchanged under the name of the body's parameter.
void LintSubject::AddLoopReaders() {
  for (const Instr* instr : report_.program().loops) {
    std::optional<WhileLoop> loop = LoopOf(const_cast<Instr*>(instr));
    if (!loop) continue;
    for (size_t i = 0; i < loop->size(); ++i) {
      if (!loop->IsInvariant(i)) continue;
      auto stored = traffic_.find(loop->init(i));
      if (stored == traffic_.end() || !stored->second.is_stored) continue;
      const Traffic& inside = TrafficOf(*loop->in_body(i));
      stored->second.steps.insert(stored->second.steps.end(), inside.steps.begin(),
                                  inside.steps.end());
      stored->second.readers += inside.readers;
    }
  }
}

std::vector<const Instr*> LintSubject::InstrsOf(const StepReport& step) const {
  std::vector<const Instr*> instrs = step.made, of_kernels = report_.KernelInstrsOf(step);
  instrs.insert(instrs.end(), of_kernels.begin(), of_kernels.end());
  return instrs;
}

std::vector<size_t> LintSubject::StepsOf(const Instr& instr) const {
  std::vector<size_t> steps;
  for (uint64_t key : KeysOf(instr))
    if (auto at = steps_of_.find(key); at != steps_of_.end())
      for (size_t step : at->second) AddNew(steps, step);
  return steps;
}

std::vector<const Instr*> LintSubject::CompiledAs(const Instr& written) const {
  std::vector<const Instr*> instrs;
  for (uint64_t key : KeysOf(written))
    if (auto at = compiled_of_.find(key); at != compiled_of_.end())
      for (const Instr* instr : at->second)
        if (instr->op() == written.op()) AddNew(instrs, instr);
  return instrs;
}

bool LintSubject::StoresLike(const Instr& written) const {
  int64_t elements = written.shape().ElementCount();
  for (uint64_t key : KeysOf(written)) {
    auto at = compiled_of_.find(key);
    if (at == compiled_of_.end()) continue;
    for (const Instr* instr : at->second)
      if (LintBytes(*instr) > 0 && instr->shape().ElementCount() == elements &&
          TrafficOf(*instr).is_stored)
        return true;
  }
  return false;
}

const LintSubject::Traffic& LintSubject::TrafficOf(const Instr& compiled) const {
  auto at = traffic_.find(&compiled);
  return at == traffic_.end() ? not_stored_ : at->second;
}

double LintSubject::Claim(size_t step, double us) {
  double claimed = std::clamp(us, 0.0, unclaimed_[step]);
  unclaimed_[step] -= claimed;
  return claimed;
}

double LintSubject::ClaimBytes(size_t step, int64_t bytes) {
  const StepReport& report = report_.steps[step];
  double moved = std::max<double>(1, static_cast<double>(report.reads + report.writes));
  double us = report.estimate ? report.estimate->memory : report.predicted_us.value_or(0);
  return Claim(step, static_cast<double>(report.runs()) * us *
                         std::min(1.0, static_cast<double>(bytes) / moved));
}

double LintSubject::ClaimTraffic(const Traffic& traffic, int64_t bytes, double share) {
  double us = 0;
  for (size_t step : traffic.steps)
    us += ClaimBytes(step, static_cast<int64_t>(static_cast<double>(bytes) * share));
  return us;
}

double LintSubject::UsOfBytes(int64_t bytes) const {
  return CopyUs(static_cast<double>(bytes), RatesOf(machine()));
}

void LintSubject::Add(Lint lint) {
  std::string key = lint.rule + (lint.severity == LintSeverity::kNote ? "\n-" : "\n+");
  for (const std::string& line : lint.lines) key += "\n" + line;
  auto [at, is_new] = at_.emplace(std::move(key), lints_.all.size());
  if (is_new) {
    lints_.all.push_back(std::move(lint));
    return;
  }
  Lint& known = lints_.all[at->second];
  known.us += lint.us;
  known.saved_us += lint.saved_us;
  known.count += lint.count;
}

void LintSubject::AddAvoided(std::string rule, std::vector<std::string> lines,
                             const std::string& how, double saved_us) {
  Add({.rule = std::move(rule),
       .severity = LintSeverity::kNote,
       .lines = std::move(lines),
       .saved_us = saved_us,
       .text = "Tokamak already does this for you: " + how});
}

Lints LintSubject::Take() {
  // Costs below this part of a call are not worth a change (chosen).
  constexpr double kMinShare = 0.005;
  std::erase_if(lints_.all, [&](const Lint& lint) {
    return lint.severity == LintSeverity::kWarning && lint.us > 0 &&
           lint.us < kMinShare * lints_.call_us;
  });
  for (Lint& lint : lints_.all)
    if (lint.count > 1) lint.text += " (" + std::to_string(lint.count) + " times)";
  std::stable_sort(lints_.all.begin(), lints_.all.end(), [](const Lint& x, const Lint& y) {
    if (x.severity != y.severity) return x.severity < y.severity;
    return x.us != y.us ? x.us > y.us : x.saved_us > y.saved_us;
  });
  return std::move(lints_);
}

int64_t LintBytes(const Instr& instr) {
  return instr.shape().IsStaticArray() ? instr.shape().ByteSize() : 0;
}

std::string LintLineOf(const Instr& instr) {
  // An instruction of a loop's body may have the line of the loop, too: take that of its operation,
  // "jit(f)/while/body/concatenate".
  std::string op(InfoOf(instr.op()).name);
  std::replace(op.begin(), op.end(), '-', '_');
  const OriginTable& origins = instr.parent()->module()->origins();
  for (const Origin* origin : origins.Of(instr.origins())) {
    if (origin->frame == FrameId::kNone) continue;
    size_t last = origin->op_name.rfind('/');
    std::string_view name(origin->op_name);
    if (last != std::string::npos && name.substr(last + 1).starts_with(op))
      return SourceLineOf(origins.frame(origin->frame));
  }
  std::vector<std::string> lines = SourceLines(instr);
  return lines.empty() ? "" : lines[0];
}

std::vector<std::string> LintLinesOf(const std::vector<const Instr*>& instrs) {
  // Lines of the text are for programs without lines of a source.
  std::vector<std::string> lines, of_text;
  for (const Instr* instr : instrs)
    if (std::string line = LintLineOf(*instr); !line.empty())
      AddNew(HasSourceLine(*instr) ? lines : of_text, line);
  return lines.empty() ? of_text : lines;
}

const Instr* LintSource(const Instr* value) {
  while (IsLintRename(value->op()) && value->operand_count() == 1) value = value->operand(0);
  return value;
}

}  // namespace tokamak
