// Command-line parsing and exit helpers of the examples.
#pragma once

#include <cstdio>
#include <cstring>

#include <tokamak/tokamak.h>

inline int Fail(const tokamak::Error& error) {
  std::fprintf(stderr, "%s\n", error.text().c_str());
  return 1;
}

// The first argument, if present.
inline tokamak::Target TargetOf(int argc, char** argv) {
  if (argc < 2) return tokamak::Target::kBest;
  return std::strcmp(argv[1], "cpu") == 0 ? tokamak::Target::kCpu : tokamak::Target::kInterpreter;
}
