#include "gpu/kernels/manifest.h"

#include <fstream>
#include <sstream>

namespace tokamak {
namespace {

Spot ReadSpot(std::istringstream& in) {
  Spot spot;
  char plus = 0;
  in >> spot.memory >> plus >> spot.offset;
  return spot;
}

Map ReadMap(std::istringstream& in) {
  Map map;
  size_t rank = 0;
  in >> map.argument >> map.type >> map.swizzle >> map.promotion >> rank;
  map.sizes.resize(rank);
  map.strides.resize(rank);
  map.boxes.resize(rank);
  map.steps.resize(rank);
  for (size_t i = 0; i < rank; ++i)
    in >> map.sizes[i] >> map.strides[i] >> map.boxes[i] >> map.steps[i];
  return map;
}

}  // namespace

std::vector<Program> ReadManifest(const std::string& path) {
  std::vector<Program> programs;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string word;
    in >> word;
    if (word == "program") {
      programs.emplace_back();
      in >> programs.back().name;
      continue;
    }
    if (programs.empty()) continue;
    Program& program = programs.back();
    if (word == "memory") {
      size_t bytes = 0;
      in >> bytes;
      program.memories.push_back(bytes);
    } else if (word == "upload") {
      Program::Upload upload{};
      in >> upload.memory >> upload.bytes >> upload.at;
      program.uploads.push_back(upload);
    } else if (word == "draw") {
      Program::Drawn drawn{};
      in >> drawn.memory >> drawn.count >> drawn.type;
      program.drawn.push_back(drawn);
    } else if (word == "launch" || word == "pack-parameter" || word == "pack-memory") {
      Step step;
      step.by_value = word == "pack-parameter";
      step.by_table = word == "pack-memory";
      size_t count = 0;
      in >> step.file >> step.function >> step.grid >> step.threads[0] >> step.threads[1] >>
          step.threads[2] >> step.dynamic >> count;
      for (size_t i = 0; i < count; ++i) step.spots.push_back(ReadSpot(in));
      program.steps.push_back(step);
    } else if (word == "map" && !program.steps.empty()) {
      program.steps.back().maps.push_back(ReadMap(in));
    } else if (word == "copy") {
      Step step;
      in >> step.bytes;
      for (int i = 0; i < 2; ++i) step.spots.push_back(ReadSpot(in));
      program.steps.push_back(step);
    } else if (word == "expect") {
      Expected expected;
      std::string near;
      in >> expected.memory >> expected.bytes >> expected.at >> expected.type >> near;
      expected.near = near == "near";
      program.expected.push_back(expected);
    } else if (word == "reference") {
      in >> program.reference;
      for (size_t size = 0; in >> size;) program.sizes.push_back(size);
    } else if (word == "traffic") {
      in >> program.traffic;
    }
  }
  return programs;
}

std::string FileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

}  // namespace tokamak
