// A folder of files, one per entry, shared by processes without locks:
//
//   <kind>-<digest>.tok  =  magic | sizes | kind | key | payload | digest of everything before
//
// Writers create a temporary file and rename it, which is atomic: readers see a whole entry or
// none, and the last of several equal writers wins. Readers compare kind, key and digest. A read
// sets the modification time, so that eviction removes the least recently used entries, down to
// three quarters of the limit. Another process may evict a file at any time; that is a miss.
//
// Files are opened without following links, and only regular files of this user that no other can
// write are read: the payload may be machine code.

#include "runtime/disk_cache.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "support/digest.h"

namespace tokamak {
namespace {

// An entry: the magic word, the sizes of kind, key and payload in eight bytes each, these three,
// and the digest of everything before. A change of the format needs a new magic word.
constexpr std::string_view kMagic = "TOKCACHE2\n";
constexpr size_t kEntryHead = kMagic.size() + 3 * sizeof(uint64_t);
constexpr std::string_view kSuffix = ".tok", kPart = ".part";
// Bytes. Chosen; no measurement on record.
constexpr int64_t kDefaultBytes = int64_t{1} << 30;
// Older temporary files were left behind by a killed process. In seconds; chosen.
constexpr int64_t kPartialFileSeconds = 3600;

void AddSize(std::string& to, size_t size) {
  auto word = static_cast<uint64_t>(size);
  to.append(reinterpret_cast<const char*>(&word), sizeof word);
}

std::string EntryOf(std::string_view kind, std::string_view key, std::string_view payload) {
  std::string entry(kMagic);
  entry.reserve(kEntryHead + kind.size() + key.size() + payload.size() + Digester::kBytes);
  for (std::string_view part : {kind, key, payload}) AddSize(entry, part.size());
  for (std::string_view part : {kind, key, payload}) entry += part;
  return entry + DigestOf(entry);
}

// The payload if this is an entry of this kind and key.
std::optional<std::string> PayloadOf(std::string entry, std::string_view kind,
                                     std::string_view key) {
  if (entry.size() < kEntryHead + Digester::kBytes || !entry.starts_with(kMagic))
    return std::nullopt;
  std::string_view all(entry);
  std::string_view body = all.substr(0, all.size() - Digester::kBytes);
  uint64_t sizes[3];
  std::memcpy(sizes, entry.data() + kMagic.size(), sizeof sizes);
  std::string_view rest = body.substr(kEntryHead);
  if (sizes[0] != kind.size() || sizes[1] != key.size() || rest.size() < kind.size() + key.size() ||
      rest.size() - kind.size() - key.size() != sizes[2])
    return std::nullopt;
  if (rest.substr(0, kind.size()) != kind || rest.substr(kind.size(), key.size()) != key ||
      DigestOf(body) != all.substr(body.size()))
    return std::nullopt;
  entry.resize(body.size());
  entry.erase(0, kEntryHead + kind.size() + key.size());
  return entry;
}

bool IsOwn(const struct stat& info) {
  return info.st_uid == geteuid() && (info.st_mode & 022) == 0;
}

// Reads a regular file of this user of at most `most` bytes. Does not block on other kinds of
// files.
std::optional<std::string> ReadAll(const std::string& path, int64_t most) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || !IsOwn(info) || info.st_size > most) {
    close(fd);
    return std::nullopt;
  }
  std::string data(static_cast<size_t>(info.st_size), '\0');
  size_t at = 0;
  while (at < data.size()) {
    ssize_t got = read(fd, data.data() + at, data.size() - at);
    if (got <= 0) break;
    at += static_cast<size_t>(got);
  }
  if (at == data.size()) futimens(fd, nullptr);  // marks it as recently used
  close(fd);
  if (at != data.size()) return std::nullopt;
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

// Lists the entries of a folder, and removes stale temporary files.
std::vector<Entry> ListEntries(const std::string& dir) {
  std::vector<Entry> entries;
  DIR* open_dir = opendir(dir.c_str());
  if (open_dir == nullptr) return entries;
  while (const dirent* item = readdir(open_dir)) {
    std::string_view name = item->d_name;
    bool is_part = name.find(std::string(kSuffix) + std::string(kPart)) != std::string_view::npos;
    if (!is_part && !name.ends_with(kSuffix)) continue;
    std::string path = dir + "/" + std::string(name);
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (is_part) {
      if (std::time(nullptr) - info.st_mtim.tv_sec > kPartialFileSeconds) unlink(path.c_str());
      continue;
    }
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

std::string DiskCache::PathOf(std::string_view kind, std::string_view key) const {
  std::string name = DigestOf(CacheKey().Add(kind).Add(key).bytes()).substr(0, 16);
  return dir_ + "/" + std::string(kind) + "-" + HexOf(name) + std::string(kSuffix);
}

bool DiskCache::OpenLocked() {
  if (usable_.has_value()) return *usable_;
  MakeParents(dir_);
  mkdir(dir_.c_str(), 0700);
  struct stat info {};
  bool mine = lstat(dir_.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && IsOwn(info);
  usable_ = mine;
  return mine;
}

bool DiskCache::IsUsable() {
  std::lock_guard<std::mutex> lock(mutex_);
  return OpenLocked();
}

std::optional<std::string> DiskCache::Get(std::string_view kind, std::string_view key) {
  if (!IsUsable()) return std::nullopt;
  std::optional<std::string> entry = ReadAll(PathOf(kind, key), max_bytes_);
  if (!entry) return std::nullopt;
  return PayloadOf(std::move(*entry), kind, key);
}

void DiskCache::Put(std::string_view kind, std::string_view key, std::string_view payload) {
  static std::atomic<uint64_t> counter{0};
  auto size = static_cast<int64_t>(key.size() + payload.size());
  if (size > max_bytes_ / 4 || !IsUsable()) return;
  std::string entry = EntryOf(kind, key, payload), path = PathOf(kind, key);
  std::string part =
      path + std::string(kPart) + std::to_string(getpid()) + "." + std::to_string(++counter);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!WriteAll(part, entry) || std::rename(part.c_str(), path.c_str()) != 0) {
    unlink(part.c_str());
    return;
  }
  if (bytes_ >= 0) bytes_ += static_cast<int64_t>(entry.size());
  ShrinkLocked();
}

// Shrinks to three quarters, so that not every new entry triggers it.
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
  AddSize(bytes_, part.size());
  bytes_ += part;
  return *this;
}

std::string CacheKey::Digest() const {
  return DigestOf(bytes_);
}

}  // namespace tokamak
