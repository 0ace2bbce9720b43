#include "backend/cuda/library_paths.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <glob.h>
#include <sys/stat.h>

namespace tokamak::cuda {
namespace {

// Newest first: file names end in the version.
void AddMatching(const std::string& pattern, std::vector<std::string>& paths) {
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (size_t i = found.gl_pathc; i-- > 0;) paths.emplace_back(found.gl_pathv[i]);
  globfree(&found);
}

// The Python package folder that a library of this process was loaded from; empty if none.
std::string PackagesOfProcess() {
  std::ifstream maps("/proc/self/maps");
  constexpr std::string_view kFolder = "/site-packages/";
  for (std::string line; std::getline(maps, line);) {
    size_t begin = line.find('/'), at = line.find(kFolder);
    if (begin != std::string::npos && at != std::string::npos && begin < at)
      return line.substr(begin, at + kFolder.size() - 1 - begin);
  }
  return "";
}

// Whether a file is the library itself, with or without a version; others are debug builds.
bool IsPlain(const std::string& path, std::string_view name) {
  size_t slash = path.rfind('/');
  std::string_view file = std::string_view(path).substr(slash == std::string::npos ? 0 : slash + 1);
  return file.starts_with(name);
}

}  // namespace

std::vector<std::string> LibraryPaths(std::string_view name) {
  std::vector<std::string> paths;
  std::string file(name);
  auto add_packages = [&](const std::string& folder) {
    AddMatching(folder + "/nvidia/*/lib/" + file + "*", paths);
  };
  if (std::string packages = PackagesOfProcess(); !packages.empty()) add_packages(packages);
  if (const char* venv = std::getenv("VIRTUAL_ENV"); venv != nullptr)
    add_packages(std::string(venv) + "/lib/python*/site-packages");
  for (const char* version : {".13", ".12", ".9", ""}) paths.push_back(file + version);
  for (const char* folder : {"/usr/local/cuda/lib64/", "/usr/local/cuda/lib/",
                             "/usr/local/cuda-*/lib64/", "/usr/local/cuda-*/lib/"})
    AddMatching(folder + file + "*", paths);
  std::erase_if(paths, [&](const std::string& path) { return !IsPlain(path, name); });
  return paths;
}

void* OpenLibrary(std::string_view name, std::string& why_not) {
  for (const std::string& path : LibraryPaths(name)) {
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    const char* why = dlerror();
    if (why_not.empty() && why != nullptr) why_not = why;
  }
  return nullptr;
}

std::string LibraryIdentity(std::string_view name) {
  for (const std::string& path : LibraryPaths(name)) {
    struct stat file {};
    if (path.front() != '/' || stat(path.c_str(), &file) != 0) continue;
    return path + " " + std::to_string(file.st_size) + " " + std::to_string(file.st_mtime);
  }
  return "";
}

}  // namespace tokamak::cuda
