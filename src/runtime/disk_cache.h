#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace tokamak {

// Bytes kept on disk by name between processes. An entry is written to a temporary file and
// renamed, and checked when it is read: a damaged one is as good as none. The folder is made for
// its owner alone and not used when it is somebody else's. Faults of the disk are never errors:
// what cannot be kept is made again. Any number of threads and processes may use one folder.
class DiskCache {
 public:
  // Not more than about `max_bytes`: the oldest entries go.
  DiskCache(std::string dir, int64_t max_bytes);

  // TOKAMAK_CACHE=dir, or off; else $XDG_CACHE_HOME/tokamak or ~/.cache/tokamak. Null: none.
  static DiskCache* OfProcess();

  // `key`: letters and digits, at least three.
  std::optional<std::string> Get(std::string_view key);
  void Put(std::string_view key, std::string_view bytes);

  // Whether the folder may be used.
  bool IsUsable();

 private:
  std::string PathOf(std::string_view key) const;
  bool OpenLocked();
  void ShrinkLocked();

  std::string dir_;
  int64_t max_bytes_;
  std::mutex mutex_;
  std::optional<bool> usable_;
  int64_t bytes_ = -1;  // of all entries, as far as this process knows; -1: not counted yet
};

// 32 digits for the contents of a cache entry: what it was made from, build and machine included.
class CacheKey {
 public:
  CacheKey& Add(std::string_view part);
  std::string Text() const;

 private:
  uint64_t low_ = 0x243f6a8885a308d3u, high_ = 0x13198a2e03707344u;
};

}  // namespace tokamak
