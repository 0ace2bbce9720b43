// The text form of a pipeline, and error messages about invalid ones.

#include <algorithm>

#include <fmt/format.h>

#include "rewrite/pipeline.h"
#include "support/near_names.h"

namespace tokamak {
namespace {

Error UnknownPass(std::string_view name) {
  std::vector<std::string_view> names = {"default", "cpu", "gpu"};  // pipelines
  for (const PassInfo& info : kPasses) names.push_back(info.name);
  Error error = MakeError(
      ErrorCode::kUnknownPass,
      fmt::format("passes: there is no pass '{}'{}", ShownWord(name), DidYouMean(name, names)));
  error.notes.push_back("`tokamak opt --list` shows all passes");
  return error;
}

Error Malformed(std::string_view what) {
  Error error = MakeError(ErrorCode::kPipelineText, fmt::format("passes: {}", what));
  error.notes.push_back("a pipeline reads like inline,dce,(simplify,cse)*");
  return error;
}

Error Unsound(const Pipeline& pipeline, size_t at) {
  const PassInfo& info = InfoOf(pipeline[at].pass);
  Error error =
      MakeError(ErrorCode::kUnsoundPipeline,
                fmt::format("passes: {} runs before its requirements are met", info.name));
  for (const PassInfo& provider : kPasses)
    if ((provider.establishes & info.needs) != 0)
      error.notes.push_back(
          fmt::format("run {} before {}: {}", provider.name, info.name, provider.meaning));
  for (size_t i = 0; i < at; ++i)
    if ((InfoOf(pipeline[i].pass).breaks & info.needs) != 0)
      error.notes.push_back(
          fmt::format("{} invalidates its result", InfoOf(pipeline[i].pass).name));
  return error;
}

class PipelineParser {
 public:
  explicit PipelineParser(std::string_view text) : text_(text) {}

  Result<Pipeline> Run() {
    while (true) {
      if (Eat('(')) {
        TOK_RETURN_IF_ERROR(Group());
      } else {
        TOK_RETURN_IF_ERROR(Name(0));
      }
      if (AtEnd()) break;
      if (!Eat(',')) return Malformed(fmt::format("',' is missing before '{}'", Rest()));
    }
    return std::move(pipeline_);
  }

 private:
  Status Group() {
    if (groups_ == UINT8_MAX) return Malformed("more than 255 groups");
    ++groups_;
    do {
      TOK_RETURN_IF_ERROR(Name(groups_));
    } while (Eat(','));
    if (!Eat(')') || !Eat('*'))
      return Malformed(fmt::format("')*' is missing before '{}'", Rest()));
    return Ok();
  }

  Status Name(uint8_t group) {
    Skip();
    size_t end = std::min(text_.find_first_of(",()* \t\n", at_), text_.size());
    std::string_view name = text_.substr(at_, end - at_);
    if (name.empty()) return Malformed(fmt::format("a pass is missing before '{}'", Rest()));
    at_ = end;
    if (std::span<const Step> steps = Named(name); !steps.empty() && group == 0) {
      uint8_t last = groups_;
      for (Step step : steps) {
        if (step.group != 0) step.group = static_cast<uint8_t>(step.group + groups_);
        last = std::max(last, step.group);
        pipeline_.push_back(step);
      }
      groups_ = last;
      return Ok();
    }
    std::optional<Pass> pass = PassFromName(name);
    if (!pass) return UnknownPass(name);
    pipeline_.push_back({*pass, group});
    return Ok();
  }

  static std::span<const Step> Named(std::string_view name) {
    if (name == "default") return kDefaultPipeline;
    if (name == "cpu") return kCpuPipeline;
    if (name == "gpu") return kGpuPipeline;
    return {};
  }

  void Skip() {
    while (at_ < text_.size() && std::string_view(" \t\n").find(text_[at_]) != std::string::npos)
      ++at_;
  }
  bool AtEnd() {
    Skip();
    return at_ == text_.size();
  }
  bool Eat(char c) {
    Skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string Rest() const { return std::string(text_.substr(at_, 30)); }

  std::string_view text_;
  size_t at_ = 0;
  uint8_t groups_ = 0;
  Pipeline pipeline_;
};

}  // namespace

std::optional<Pass> PassFromName(std::string_view name) {
  auto it = std::ranges::find(kPasses, name, &PassInfo::name);
  if (it == kPasses.end()) return std::nullopt;
  return static_cast<Pass>(it - kPasses.begin());
}

Result<Pipeline> ParsePipelineUnchecked(std::string_view text) {
  if (text.find_first_not_of(" \t\n") == std::string_view::npos) return Pipeline{};
  return PipelineParser(text).Run();
}

Result<Pipeline> ParsePipeline(std::string_view text) {
  TOK_TRY(Pipeline pipeline, ParsePipelineUnchecked(text));
  size_t at = FirstUnsound(pipeline);
  if (at < pipeline.size()) return Unsound(pipeline, at);
  return pipeline;
}

std::string ToString(std::span<const Step> steps) {
  std::string text;
  for (size_t i = 0; i < steps.size(); ++i) {
    uint8_t group = steps[i].group;
    if (i > 0) text += ",";
    if (group != 0 && (i == 0 || steps[i - 1].group != group)) text += "(";
    text += InfoOf(steps[i].pass).name;
    if (group != 0 && (i + 1 == steps.size() || steps[i + 1].group != group)) text += ")*";
  }
  return text;
}

}  // namespace tokamak
