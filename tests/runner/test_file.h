#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/result.h"

// The directives of a text test: comments that begin with a keyword in capitals (docs/testing.md
// lists them).

namespace tokamak {

// "TK2103 at 7:19", "TK1204 at byte 17" or "TK6001".
struct ExpectedError {
  std::string code;
  std::string location;  // "7:19", "byte 17", or ""
  bool operator==(const ExpectedError&) const = default;
};
std::string ToString(const ExpectedError& error);

// A RUN line and its expectations.
struct TestRun {
  std::vector<std::string> words;  // of the RUN line; %s is the file, %d its folder
  std::vector<ExpectedError> errors;
  std::vector<size_t> error_lines;              // their lines, counted from 0
  std::vector<std::string> values;              // "out_0: f32[2] {1, 2}"
  std::vector<std::string> out, err;            // texts that must occur, in order
  std::vector<std::string> accepted, rejected;  // of opt: "x -> y by rule", or "none"
  std::optional<std::string> same_as;           // another file, from this one's folder
  std::optional<std::vector<std::string>> after;
  size_t after_begin = 0, after_end = 0;  // its lines, counted from 0
  // Reasons why the values, or the cost, of the plan are not checked.
  std::optional<std::string> unchecked_values, unchecked_cost;
  // Values are checked with these numbers of the program replaced.
  std::vector<std::pair<std::string, std::string>> smaller;
  std::optional<double> cost_limit_us;                 // of the predicted cost
  std::vector<std::vector<std::string>> cheaper_than;  // options of costlier plans
  std::optional<int> exit;
  std::optional<int64_t> checks, kernels;
};

struct TestFile {
  std::string path;
  std::string text;
  std::vector<TestRun> runs;
};

// Rejects a line that looks like a directive but is not a known one.
Result<TestFile> ParseTestFile(const std::string& path, std::string text);

// The first of `parts` that does not occur in `text` after the end of the preceding one; null if
// all occur in order.
const std::string* FirstMissing(std::string_view text, const std::vector<std::string>& parts);

// The bytes that a .bytes file denotes: per line hex digits, "text" with \n, \t, \\, \" and \xHH,
// or N * followed by one of those; # begins a comment.
Result<std::string> DecodeBytesFile(std::string_view text, const std::string& path);

// The file's text with whole numbers outside of comments replaced.
std::string WithNumbers(std::string_view text,
                        const std::vector<std::pair<std::string, std::string>>& numbers);

// The file's text with the lines of a run's AFTER or ERRORs replaced.
std::string WithAfter(const TestFile& file, const TestRun& run, std::string_view output);
std::string WithErrors(const TestFile& file, const TestRun& run,
                       const std::vector<ExpectedError>& errors);

}  // namespace tokamak
