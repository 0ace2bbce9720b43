#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/bytes.h"
#include "support/result.h"

namespace tokamak {

struct ZipEntry {
  std::string name;
  Bytes data;  // a window into the archive when it is stored without compression
};

// The entries of a zip archive: stored and (with zlib) deflated, zip64 too.
// The archive is not trusted: what it claims is checked against its bytes.
Result<std::vector<ZipEntry>> ReadZip(const Bytes& archive, const std::string& file);

// Writes entries without compression.
class ZipWriter {
 public:
  // The content is given in parts, to spare one copy of a large array.
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
