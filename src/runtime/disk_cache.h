#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace tokamak {

// The only component that stores data on disk between processes: payloads by kind and key. An entry
// contains kind, key and payload under a digest of all three, and all are compared when it is read:
// an entry that was copied, renamed, damaged or truncated is ignored. Entries are written to a
// temporary file and renamed.
//
// The digest detects accidents, not attacks: a user who can write to the folder decides which
// machine code runs. So the folder is created for its owner alone, and neither the folder nor an
// entry is used if another user owns it or can write to it.
//
// Disk errors are never reported as errors: what cannot be cached is recomputed. Any number of
// threads and processes may use one folder.
class DiskCache {
 public:
  // Evicts the oldest entries to stay at about `max_bytes`.
  DiskCache(std::string dir, int64_t max_bytes);

  // TOKAMAK_CACHE=dir, or off; else $XDG_CACHE_HOME/tokamak or ~/.cache/tokamak. Null if disabled.
  static DiskCache* OfProcess();

  // `kind`: the type of the payload, in lower-case letters, digits and '-'. `key`: everything that
  // the payload was computed from (CacheKey), or its digest if that is large.
  std::optional<std::string> Get(std::string_view kind, std::string_view key);
  void Put(std::string_view kind, std::string_view key, std::string_view payload);

  // Whether the folder may be used.
  bool IsUsable();

  // The path of an entry, whether it exists or not.
  std::string PathOf(std::string_view kind, std::string_view key) const;

 private:
  bool OpenLocked();
  void ShrinkLocked();

  std::string dir_;
  int64_t max_bytes_;
  std::mutex mutex_;
  std::optional<bool> usable_;
  int64_t bytes_ = -1;  // of all entries, as last seen by this process; -1: not counted yet
};

// A cache key: a sequence of everything that an entry depends on, including build and machine where
// they matter.
class CacheKey {
 public:
  CacheKey& Add(std::string_view part);
  // All parts, each preceded by its length.
  const std::string& bytes() const { return bytes_; }
  // A 32-byte digest of them.
  std::string Digest() const;

 private:
  std::string bytes_;
};

}  // namespace tokamak
