#include "random/options.h"

#include <cstdlib>
#include <string_view>

#include "random/check.h"

namespace tokamak::fuzz {
namespace {

Error Usage(const std::string& text) {
  return MakeError(ErrorCode::kUsage, "random_programs: " + text);
}

// Digits, optionally separated by '_'.
bool ParseNumber(std::string_view text, uint64_t& number) {
  number = 0;
  for (char c : text) {
    if (c == '_') continue;
    if (c < '0' || c > '9') return false;
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  return !text.empty();
}

Status ParseSeeds(std::string_view text, Options& options) {
  size_t dots = text.find("..");
  bool good = ParseNumber(text.substr(0, dots), options.first);
  options.end = options.first + 1;
  if (good && dots != std::string_view::npos)
    good = ParseNumber(text.substr(dots + 2), options.end);
  if (good && options.end >= options.first) return Ok();
  return Usage("--seeds '" + std::string(text) + "' is not A..B");
}

Status ParseCount(std::string_view name, std::string_view text, int& count) {
  uint64_t number = 0;
  if (!ParseNumber(text, number) || number < 1 || number > 1'000'000)
    return Usage(std::string(name) + " '" + std::string(text) + "' is not a number");
  count = static_cast<int>(number);
  return Ok();
}

// Parses an option without an argument; false if it is not one.
bool ParseFlag(std::string_view word, Options& options) {
  if (word == "--help") {
    options.help = true;
  } else if (word == "--print") {
    options.print = true;
  } else if (word == "--hash") {
    options.hash = true;
  } else if (word == "--wide") {
    options.size.wide = true;
    options.size.max_elements = 6000;
  } else if (word == "--contractions") {
    options.size.contractions = true;
    // Chosen: 4097 x 255 elements. The number of products limits the time of a program.
    options.size.max_elements = 1 << 20;
  } else if (word == "--exact") {
    options.size.exact = true;
  } else if (word == "--statistics") {
    options.statistics = true;
  } else if (word == "--round-trip") {
    options.through.insert(options.through.end(), {"hlo", "mlir"});
  } else if (word == "--pipeline") {
    options.through.emplace_back("pipeline");
  } else if (word == "--all") {
    options.through = TransformationNames();
  } else {
    return false;
  }
  return true;
}

Status ParseValue(std::string_view name, const std::string& value, Options& options) {
  if (name == "--seeds") return ParseSeeds(value, options);
  if (name == "--jobs") return ParseCount(name, value, options.jobs);
  if (name == "--max-instrs") return ParseCount(name, value, options.size.max_instrs);
  if (name == "--most-findings") return ParseCount(name, value, options.most_findings);
  if (name == "--keep" || name == "--write") {
    (name == "--keep" ? options.keep : options.write) = value;
    return Ok();
  }
  if (name != "--pass" && name != "--through")
    return Usage("'" + std::string(name) + "' is not an option");
  if (TransformationNamed(value) == nullptr)
    return Usage("there is no transformation '" + value + "'; --help names them");
  options.through.push_back(value);
  return Ok();
}

}  // namespace

Result<Options> ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (!word.starts_with("--")) {
      options.files.push_back(word);
      continue;
    }
    if (ParseFlag(word, options)) continue;
    if (i + 1 == argc) return Usage("'" + word + "' is not an option, or lacks its value");
    TOK_RETURN_IF_ERROR(ParseValue(word, argv[++i], options));
  }
  if (options.size.max_instrs < 8) return Usage("--max-instrs must be 8 or more");
  if (options.through.empty()) options.through = {"hlo", "mlir", "pipeline"};
  return options;
}

std::string HelpText() {
  std::string text =
      "usage: random_programs [--seeds A..B] [--round-trip] [--pass NAME]... [--pipeline] [--all]\n"
      "                       [--jobs N] [--keep DIR] [--max-instrs N] [--most-findings N]\n"
      "                       [--wide] [--exact] [--contractions] [--print] [--write DIR] "
      "[--hash] [--statistics] [FILE]...\n"
      "\n"
      "Draws a random well-typed program for each seed A, A+1 ... B-1 (0..1000), sends it through\n"
      "the transformations asked for, and compares what the interpreter computes before and "
      "after,\n"
      "on inputs rich in NaN, infinities, signed zeros and extremes. Exits 1 when something "
      "differs.\n"
      "\n"
      "  --keep DIR     writes each program that fails, made small, as DIR/NAME-SEED.hlo: ready "
      "for\n"
      "                 tests/fuzz/found/random, which every build checks again\n"
      "  FILE           checks such files instead: their first line says how\n"
      "  --print        prints the programs and does nothing else\n"
      "  --write DIR    writes each program and its inputs as DIR/SEED.hlo, DIR/SEED-ordinary.npz "
      "and\n"
      "                 DIR/SEED-special.npz, for `tokamak run`, and does nothing else\n"
      "  --hash         prints a hash of all of them: equal on every machine, and as long as "
      "nothing\n"
      "                 about drawing changes\n"
      "  --wide         other programs: larger arrays, and more that scans, sorts, scatters, "
      "multiplies\n"
      "  --contractions other programs: products of matrices of all types and sizes, and what is "
      "fused with\n"
      "                 them. They promise no bits: with TOKAMAK_CHECK=kernels\n"
      "  --exact        programs of ops alone whose bits every backend promises: none is skipped "
      "for "
      "that\n"
      "  --statistics   counts the programs in which each op occurs, and the reasons for which "
      "the\n"
      "                 interpreter rejects programs. With TOKAMAK_CHECK=kernels each kernel of "
      "on:cpu is\n"
      "                 compared with the interpreter, reals within a tolerance: also where no "
      "bits are\n"
      "                 promised\n"
      "\n"
      "transformations (--pass NAME):";
  for (const std::string& name : TransformationNames()) text += " " + name;
  return text + "\n  a pipeline as text; twice:NAME, whose second run must change nothing\n";
}

}  // namespace tokamak::fuzz
