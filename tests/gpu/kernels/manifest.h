#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Reads a bundle written by bundle.cc: programs, their launches, inputs, and the simulator's
// results.

namespace tokamak {

struct Spot {
  size_t memory = 0, offset = 0;
};

// A tensor map of a launch, after the pointers: the driver's arguments as
// backend/cuda/tensor_map.h gives them.
struct Map {
  size_t argument = 0;
  int type = 0, swizzle = 0, promotion = 0;
  std::vector<uint64_t> sizes, strides;
  std::vector<uint32_t> boxes, steps;
};

struct Step {
  std::string file, function;  // a launch; empty for a copy
  // A horizontally fused launch: its only parameter is the table of pointers, or the address of
  // one.
  bool by_value = false, by_table = false;
  unsigned grid = 1, threads[3] = {1, 1, 1}, dynamic = 0;
  std::vector<Spot> spots;
  std::vector<Map> maps;
  size_t bytes = 0;
};

struct Expected {
  size_t memory = 0, bytes = 0, at = 0;
  std::string type;
  bool near = false;  // tensor cores sum in their own order, or the device approximates
};

struct Program {
  std::string name;
  std::vector<size_t> memories;
  struct Upload {
    size_t memory, bytes, at;
  };
  std::vector<Upload> uploads;
  struct Drawn {
    size_t memory, count;
    std::string type;
  };
  std::vector<Drawn> drawn;
  std::vector<Step> steps;
  std::vector<Expected> expected;
  std::string reference;  // large programs: the computation in double to compare with
  std::vector<size_t> sizes;
  size_t traffic = 0;
};

std::vector<Program> ReadManifest(const std::string& path);

std::string FileBytes(const std::string& path);

}  // namespace tokamak
