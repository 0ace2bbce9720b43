#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/bytes.h"
#include "support/result.h"

// Reading and writing of zip archives, the container of .npz files.

namespace tokamak {

struct ZipEntry {
  std::string name;
  Bytes data;  // points into the archive if stored without compression
};

// The entries of a zip archive: stored, (with zlib) deflated, and zip64. The archive is untrusted:
// all sizes and offsets are checked against its bytes.
Result<std::vector<ZipEntry>> ReadZip(const Bytes& archive, const std::string& file);

// Writes uncompressed entries.
class ZipWriter {
 public:
  // The content is passed in two parts to avoid copying a large array.
  void Add(std::string_view name, std::string_view head, std::string_view body);
  std::string Finish() &&;

 private:
  struct Entry {
    std::string name;
    uint32_t crc = 0;
    uint64_t size = 0, offset = 0;
  };
  std::string out_;
  std::vector<Entry> entries_;
};

}  // namespace tokamak
