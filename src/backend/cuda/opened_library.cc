#include "backend/cuda/opened_library.h"

#include <dlfcn.h>

#include <fmt/format.h>

#include "backend/cuda/library_paths.h"

namespace tokamak::cuda {

Result<OpenedLibrary> OpenedLibrary::Open(const std::string& name, const std::string& file,
                                          const char* property, int least) {
  OpenedLibrary opened;
  opened.name_ = name;
  std::string why;
  opened.library_ = OpenLibrary(file, why);
  if (opened.library_ == nullptr)
    return MakeError(ErrorCode::kNoDriver, name + " is not there: " + why);
  constexpr int kMajor = 0;
  int (*version)(int what, int* value) = nullptr;
  opened.Find(property, version);
  TOK_RETURN_IF_ERROR(opened.missing());
  int major = 0;
  if (version(kMajor, &major) != 0 || major < least)
    return MakeError(ErrorCode::kNoDriver,
                     fmt::format("{} is of version {}, needed is {} or later", name, major, least));
  return opened;
}

void* OpenedLibrary::Address(const std::string& symbol) {
  void* address = dlsym(library_, symbol.c_str());
  if (address == nullptr && missing_.empty()) missing_ = symbol;
  return address;
}

Status OpenedLibrary::missing() const {
  if (missing_.empty()) return Ok();
  return MakeError(ErrorCode::kNoDriver, name_ + " lacks " + missing_);
}

}  // namespace tokamak::cuda
