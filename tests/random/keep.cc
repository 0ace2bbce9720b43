// Writes failing programs to files. The first line says how to check one again:
//   // random_programs: through mlir, inputs 17
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "random/campaign.h"
#include "text/load.h"
#include "text/read.h"
#include "text/write.h"

namespace tokamak::fuzz {
namespace {

constexpr std::string_view kMark = "// random_programs: through ";
constexpr std::string_view kInputs = ", inputs ";

// Text as comment lines.
std::string Comment(const std::string& text) {
  std::string line = "// " + text.substr(0, 300);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line + "\n";
}

}  // namespace

Result<std::string> KeepFailure(const Options& options, const Failure& failure) {
  std::unique_ptr<Transformation> through = TransformationNamed(failure.through);
  std::unique_ptr<Module> module = DrawProgram(failure.seed, options.size);
  if (failure.kind != Finding::Kind::kDrawn)
    module = SmallestBroken(*module, failure.seed, *through, failure.kind);
  const Transformation* one[] = {through.get()};
  std::string what = CheckProgram(*module, failure.seed, one)[0].what;
  std::string text = fmt::format("{}{}{}{}\n", kMark, failure.through, kInputs, failure.seed);
  text += Comment(what) + WriteHloText(*module);
  std::string name = failure.through;
  std::replace(name.begin(), name.end(), '/', '_');
  std::string path = fmt::format("{}/{}-{}.hlo", options.keep, name, failure.seed);
  TOK_RETURN_IF_ERROR(WriteFileBytes(path, text));
  return path;
}

Result<std::string> ReplayFile(const std::string& path) {
  TOK_TRY(Bytes bytes, ReadFileBytes(path));
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string_view line = text.substr(0, text.find('\n'));
  size_t inputs = line.find(kInputs);
  if (!line.starts_with(kMark) || inputs == std::string_view::npos)
    return MakeError(ErrorCode::kUsage, "random_programs: the first line of '" + path +
                                            "' does not say how to check it");
  std::string name(line.substr(kMark.size(), inputs - kMark.size()));
  uint64_t seed =
      std::strtoull(std::string(line.substr(inputs + kInputs.size())).c_str(), nullptr, 10);
  std::unique_ptr<Transformation> through = TransformationNamed(name);
  if (through == nullptr)
    return MakeError(ErrorCode::kUsage,
                     "random_programs: there is no transformation '" + name + "'");
  TOK_TRY(std::unique_ptr<Module> module, ReadModule(bytes, path));
  const Transformation* one[] = {through.get()};
  Finding finding = CheckProgram(*module, seed, one)[0];
  if (finding.kind == Finding::Kind::kNotInterpreted)
    return "the interpreter rejects it: " + finding.what;
  return finding.what;
}

}  // namespace tokamak::fuzz
