#pragma once

// Runs the text tests of tests/ in-process and collects their failures.

#include <string>
#include <vector>

#include "runner/test_file.h"

namespace tokamak {

struct TestResult {
  std::vector<std::string> failures;  // empty if the test passed
  bool updated = false;
  double cpu_seconds = 0;
};

struct RunnerOptions {
  std::string temporary;  // a folder for test output
  bool update = false;    // rewrite AFTER where it differs
  std::string backend;    // only runs of `RUN: run` that compare values, on this backend
  double cpu_limit_seconds = 10;
};

// Runs every RUN line of one file in this process.
TestResult RunTestFile(const std::string& path, const RunnerOptions& options);

}  // namespace tokamak
