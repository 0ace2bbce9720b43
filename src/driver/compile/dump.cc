#include "driver/compile/dump.h"

#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include "text/load.h"
#include "text/write.h"

namespace tokamak {
namespace {

// The value of the last `--name=value` among flags.
std::string FlagValue(std::string_view flags, std::string_view name) {
  std::string value;
  for (size_t begin = 0; begin < flags.size();) {
    size_t end = flags.find_first_of(" \t\n", begin);
    if (end == std::string_view::npos) end = flags.size();
    std::string_view word = flags.substr(begin, end - begin);
    if (word.starts_with("--") && word.substr(2).starts_with(name) &&
        word.substr(2 + name.size()).starts_with("="))
      value = word.substr(2 + name.size() + 1);
    begin = end + 1;
  }
  return value;
}

void MakeDirs(const std::string& path) {
  for (size_t at = 1; at <= path.size(); ++at)
    if (at == path.size() || path[at] == '/') mkdir(path.substr(0, at).c_str(), 0777);
}

constexpr std::string_view kBefore = ".before_optimizations.txt";

// Whether another program has this file. If not, it is created, so that no other program takes it.
bool IsTaken(const std::string& path) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return errno == EEXIST;
  close(fd);
  return false;
}

// A name reduced to characters that are safe in a file name.
std::string Plain(const std::string& name) {
  std::string plain = name.substr(0, 100);
  for (char& c : plain)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-' && c != '.')
      c = '_';
  return plain.empty() ? "module" : plain;
}

}  // namespace

std::string DumpDirOfEnvironment() {
  if (const char* dir = std::getenv("TOKAMAK_EXPLAIN"); dir != nullptr && *dir != '\0') return dir;
  const char* flags = std::getenv("XLA_FLAGS");
  return flags == nullptr ? "" : FlagValue(flags, "xla_dump_to");
}

Dump::Dump(std::string dir, const std::string& name) {
  static std::atomic<int> count{0};
  if (dir.empty()) return;
  while (dir.size() > 1 && dir.back() == '/') dir.pop_back();
  MakeDirs(dir);
  do {
    char number[32];
    std::snprintf(number, sizeof number, "/module_%04d.", count.fetch_add(1));
    prefix_ = dir + number + Plain(name);
  } while (IsTaken(prefix_ + std::string(kBefore)));
}

void Dump::Before(const Module& module) const {
  if (IsOn()) (void)WriteFileBytes(prefix_ + std::string(kBefore), WriteHloText(module));
}

void Dump::After(const Module& module) const {
  if (IsOn()) (void)WriteFileBytes(prefix_ + ".after_optimizations.txt", WriteHloText(module));
}

}  // namespace tokamak
