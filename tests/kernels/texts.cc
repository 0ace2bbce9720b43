#include "kernels/texts.h"

#include <fstream>
#include <sstream>

namespace tokamak {

std::string FileText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> KernelsOf(const std::string& text) {
  std::vector<std::string> kernels;
  std::istringstream in(text);
  bool within = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("kernel ")) {
      kernels.emplace_back();
      within = true;
    }
    if (within) kernels.back() += line + "\n";
    if (line == "}") within = false;
  }
  return kernels;
}

}  // namespace tokamak
