#include "runtime/disk_cache.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "support/hash.h"

namespace tokamak {
namespace {

constexpr std::string_view kMagic = "TOKCACHE1\n";
constexpr std::string_view kSuffix = ".tok";
constexpr int64_t kDefaultBytes = int64_t{1} << 30;

uint64_t Checksum(std::string_view bytes) {
  Hasher hasher;
  hasher.Add(bytes);
  return hasher.digest();
}

std::optional<std::string> ReadAll(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string data;
  char block[1 << 16];
  ssize_t got = 0;
  while ((got = read(fd, block, sizeof block)) > 0) data.append(block, static_cast<size_t>(got));
  if (got == 0) futimens(fd, nullptr);  // used just now
  close(fd);
  if (got < 0) return std::nullopt;
  return data;
}

bool WriteAll(const std::string& path, std::string_view data) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  while (!data.empty()) {
    ssize_t put = write(fd, data.data(), data.size());
    if (put <= 0) break;
    data.remove_prefix(static_cast<size_t>(put));
  }
  return close(fd) == 0 && data.empty();
}

struct Entry {
  std::string path;
  int64_t bytes;
  int64_t used_ns;
};

std::vector<Entry> ListEntries(const std::string& dir) {
  std::vector<Entry> entries;
  DIR* open_dir = opendir(dir.c_str());
  if (open_dir == nullptr) return entries;
  while (const dirent* item = readdir(open_dir)) {
    std::string_view name = item->d_name;
    if (!name.ends_with(kSuffix)) continue;
    std::string path = dir + "/" + std::string(name);
    struct stat info {};
    if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    entries.push_back(
        {std::move(path), info.st_size, info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec});
  }
  closedir(open_dir);
  return entries;
}

void MakeParents(const std::string& path) {
  for (size_t at = 1; at < path.size(); ++at)
    if (path[at] == '/') mkdir(path.substr(0, at).c_str(), 0777);
}

}  // namespace

DiskCache::DiskCache(std::string dir, int64_t max_bytes)
    : dir_(std::move(dir)), max_bytes_(max_bytes) {}

DiskCache* DiskCache::OfProcess() {
  static DiskCache* cache = []() -> DiskCache* {
    const char* given = std::getenv("TOKAMAK_CACHE");
    std::string dir = given == nullptr ? "" : given;
    if (dir == "off") return nullptr;
    if (dir.empty()) {
      const char* xdg = std::getenv("XDG_CACHE_HOME");
      const char* home = std::getenv("HOME");
      if (xdg != nullptr && *xdg == '/') {
        dir = std::string(xdg) + "/tokamak";
      } else if (home != nullptr && *home == '/') {
        dir = std::string(home) + "/.cache/tokamak";
      } else {
        return nullptr;
      }
    }
    return new DiskCache(dir, kDefaultBytes);
  }();
  return cache;
}

std::string DiskCache::PathOf(std::string_view key) const {
  return dir_ + "/" + std::string(key) + std::string(kSuffix);
}

bool DiskCache::OpenLocked() {
  if (usable_.has_value()) return *usable_;
  MakeParents(dir_);
  mkdir(dir_.c_str(), 0700);
  struct stat info {};
  bool mine = lstat(dir_.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
              info.st_uid == geteuid() && (info.st_mode & 022) == 0;
  usable_ = mine;
  return mine;
}

bool DiskCache::IsUsable() {
  std::lock_guard<std::mutex> lock(mutex_);
  return OpenLocked();
}

std::optional<std::string> DiskCache::Get(std::string_view key) {
  if (!IsUsable()) return std::nullopt;
  std::optional<std::string> data = ReadAll(PathOf(key));
  uint64_t sum = 0;
  if (!data || data->size() < kMagic.size() + sizeof sum || !data->starts_with(kMagic))
    return std::nullopt;
  std::memcpy(&sum, data->data() + kMagic.size(), sizeof sum);
  data->erase(0, kMagic.size() + sizeof sum);
  if (Checksum(*data) != sum) return std::nullopt;
  return data;
}

void DiskCache::Put(std::string_view key, std::string_view bytes) {
  static std::atomic<uint64_t> counter{0};
  auto size = static_cast<int64_t>(bytes.size());
  std::lock_guard<std::mutex> lock(mutex_);
  if (!OpenLocked() || size > max_bytes_ / 4) return;
  uint64_t sum = Checksum(bytes);
  std::string data(kMagic);
  data.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  data += bytes;
  std::string path = PathOf(key);
  std::string part = path + ".part" + std::to_string(getpid()) + "." + std::to_string(++counter);
  if (!WriteAll(part, data) || std::rename(part.c_str(), path.c_str()) != 0) {
    unlink(part.c_str());
    return;
  }
  if (bytes_ >= 0) bytes_ += static_cast<int64_t>(data.size());
  ShrinkLocked();
}

// Down to three quarters, so that it is not done with every entry.
void DiskCache::ShrinkLocked() {
  if (bytes_ >= 0 && bytes_ <= max_bytes_) return;
  std::vector<Entry> entries = ListEntries(dir_);
  bytes_ = 0;
  for (const Entry& entry : entries) bytes_ += entry.bytes;
  if (bytes_ <= max_bytes_) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used_ns < b.used_ns; });
  for (const Entry& entry : entries) {
    if (bytes_ <= max_bytes_ / 4 * 3) return;
    if (unlink(entry.path.c_str()) == 0) bytes_ -= entry.bytes;
  }
}

CacheKey& CacheKey::Add(std::string_view part) {
  Hasher low, high;
  low.Add(low_);
  low.Add(part);
  high.Add(part);
  high.Add(high_);
  low_ = low.digest();
  high_ = high.digest();
  return *this;
}

std::string CacheKey::Text() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high_),
                static_cast<unsigned long long>(low_));
  return text;
}

}  // namespace tokamak
