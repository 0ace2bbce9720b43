#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace tokamak {

// The one place where anything is kept on disk between processes: payloads by kind and key, both of
// which are written with the payload and compared when it is read, under a digest of all three. An
// entry that was copied, renamed, damaged or cut off is as good as none. Entries are written to a
// temporary file and renamed.
//
// The digest tells accidents, not attacks: whoever may write to the folder decides what machine
// code runs. So the folder is made for its owner alone, and neither it nor an entry is used when it
// is somebody else's or others may write to it.
//
// Faults of the disk are never errors: what cannot be kept is made again. Any number of threads and
// processes may use one folder.
class DiskCache {
 public:
  // Not more than about `max_bytes`: the oldest entries go.
  DiskCache(std::string dir, int64_t max_bytes);

  // TOKAMAK_CACHE=dir, or off; else $XDG_CACHE_HOME/tokamak or ~/.cache/tokamak. Null: none.
  static DiskCache* OfProcess();

  // `kind`: what sort of thing it is, in small letters, digits and '-'. `key`: all that the payload
  // was made from (CacheKey), or the digest of it where that is large.
  std::optional<std::string> Get(std::string_view kind, std::string_view key);
  void Put(std::string_view kind, std::string_view key, std::string_view payload);

  // Whether the folder may be used.
  bool IsUsable();

  // Where an entry is, if there is one.
  std::string PathOf(std::string_view kind, std::string_view key) const;

 private:
  bool OpenLocked();
  void ShrinkLocked();

  std::string dir_;
  int64_t max_bytes_;
  std::mutex mutex_;
  std::optional<bool> usable_;
  int64_t bytes_ = -1;  // of all entries, as far as this process knows; -1: not counted yet
};

// What a cache entry was made from, part by part; build and machine are parts, where they count.
class CacheKey {
 public:
  CacheKey& Add(std::string_view part);
  // All parts, each with its length.
  const std::string& bytes() const { return bytes_; }
  // 32 bytes that stand for them.
  std::string Digest() const;

 private:
  std::string bytes_;
};

}  // namespace tokamak
