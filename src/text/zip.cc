// A zip archive is read from its end: the end record locates the central directory, which has one
// record per entry. All numbers are little-endian. A size of 0xffffffff means that the size is in a
// "zip64" extra field.
//
//   local header, data | ... | central directory | zip64 end | zip64 locator | end record
//
// The archive is untrusted. Every offset and size is checked against the bytes of the file before
// it is used (Holds). The packed sizes of all entries may not exceed the file, and a claimed size
// must be possible for a deflate stream: a small file cannot allocate much memory. CRC-32 is
// checked. Writing always uses zip64 and a fixed date: equal arrays give equal files.

#include "text/zip.h"

#include <algorithm>
#include <array>
#include <cstring>

#if TOK_HAVE_ZLIB
#include <zlib.h>
#endif

namespace tokamak {
namespace {

// Signatures and sizes in bytes of the records (zip specification, APPNOTE 4.3).
constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56,
                 kLocatorSize = 20;
// Maximum expansion of a deflate stream (1032:1 by its format), rounded up.
constexpr uint64_t kMaxInflation = 1040;

template <typename T>
T Get(std::string_view data, size_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value |
                           static_cast<T>(T{static_cast<unsigned char>(data[at + i])} << (8 * i)));
  return value;
}

// Little-endian; bytes past the eighth are zero.
void Put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i, value >>= 8) out.push_back(static_cast<char>(value & 0xff));
}

uint32_t Crc32(uint32_t crc, std::string_view data) {
#if TOK_HAVE_ZLIB
  while (!data.empty()) {
    size_t chunk = std::min<size_t>(data.size(), 1u << 30);
    crc = static_cast<uint32_t>(
        crc32(crc, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(chunk)));
    data.remove_prefix(chunk);
  }
  return crc;
#else
  static const auto table = [] {
    std::array<uint32_t, 256> rows{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t row = i;
      for (int bit = 0; bit < 8; ++bit) row = (row >> 1) ^ ((row & 1) != 0 ? 0xedb88320u : 0u);
      rows[i] = row;
    }
    return rows;
  }();
  crc = ~crc;
  for (char c : data) crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
#endif
}

std::string Hex(uint32_t value) {
  std::string text;
  for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[(value >> shift) & 15];
  return text;
}

struct Directory {
  uint64_t offset = 0, size = 0, count = 0;
};

struct Record {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;  // of the content, from the directory
  uint64_t packed = 0, size = 0, offset = 0;
};

class ZipReader {
 public:
  ZipReader(const Bytes& archive, const std::string& file)
      : archive_(archive), data_(archive.text()), file_(file) {}

  Result<std::vector<ZipEntry>> Read() {
    TOK_TRY(std::vector<Record> records, ReadDirectory());
    std::vector<ZipEntry> entries;
    for (Record& record : records) {
      TOK_TRY(Bytes data, ReadContent(record));
      TOK_RETURN_IF_ERROR(CheckContent(record, data));
      entries.push_back({std::move(record.name), std::move(data)});
    }
    return entries;
  }

 private:
  Error Malformed(uint64_t at, const std::string& what) const {
    return MakeError(ErrorCode::kMalformedNpz, "npz: " + what,
                     {.file = file_, .offset = static_cast<int64_t>(at)});
  }
  bool Holds(uint64_t at, uint64_t size) const {
    return at <= data_.size() && size <= data_.size() - at;
  }

  // Scans backwards for the end record, behind which a comment of up to 64 KiB may follow.
  Result<Directory> FindDirectory() const {
    size_t last = data_.size() < kEndSize ? 0 : data_.size() - kEndSize + 1;
    size_t first = last > 0x10000 ? last - 0x10000 : 0;  // a comment may follow the record
    for (size_t at = last; at-- > first;) {
      if (Get<uint32_t>(data_, at) != kEnd) continue;
      Directory found{Get<uint32_t>(data_, at + 16), Get<uint32_t>(data_, at + 12),
                      Get<uint16_t>(data_, at + 10)};
      if (at >= kLocatorSize && Get<uint32_t>(data_, at - kLocatorSize) == kLocator64) {
        uint64_t end64 = Get<uint64_t>(data_, at - kLocatorSize + 8);
        if (!Holds(end64, kEnd64Size) || Get<uint32_t>(data_, end64) != kEnd64)
          return Malformed(at - kLocatorSize, "the zip64 end record is misplaced");
        found = {Get<uint64_t>(data_, end64 + 48), Get<uint64_t>(data_, end64 + 40),
                 Get<uint64_t>(data_, end64 + 32)};
      }
      if (!Holds(found.offset, found.size) || found.count > found.size / kCentralSize)
        return Malformed(at, "the central directory of " + std::to_string(found.size) +
                                 " bytes at " + std::to_string(found.offset) +
                                 " does not fit a file of " + std::to_string(data_.size()));
      return found;
    }
    Error error =
        Malformed(0, "the file is not a .npz file, or is truncated: no zip end record in " +
                         std::to_string(data_.size()) + " bytes");
    error.notes.push_back("np.savez(file, in_0=x, in_1=y) writes one");
    return error;
  }

  Result<std::vector<Record>> ReadDirectory() const {
    TOK_TRY(Directory directory, FindDirectory());
    std::vector<Record> records;
    uint64_t at = directory.offset, end = directory.offset + directory.size, packed = 0;
    for (uint64_t i = 0; i < directory.count; ++i) {
      TOK_TRY(Record record, ReadRecord(at, end));
      // Many entries sharing the same bytes would inflate a small file to any size (zip bomb).
      packed += std::min<uint64_t>(record.packed, data_.size() + 1);
      if (packed > data_.size())
        return Malformed(record.offset, "entry '" + record.name +
                                            "' overlaps another, or runs past the end of the file");
      records.push_back(std::move(record));
    }
    return records;
  }

  Result<Record> ReadRecord(uint64_t& at, uint64_t end) const {
    if (end - at < kCentralSize || Get<uint32_t>(data_, at) != kCentral)
      return Malformed(at, "no directory record here");
    Record record{.name = {},
                  .flags = Get<uint16_t>(data_, at + 8),
                  .method = Get<uint16_t>(data_, at + 10),
                  .crc = Get<uint32_t>(data_, at + 16),
                  .packed = Get<uint32_t>(data_, at + 20),
                  .size = Get<uint32_t>(data_, at + 24),
                  .offset = Get<uint32_t>(data_, at + 42)};
    uint64_t name = Get<uint16_t>(data_, at + 28), extra = Get<uint16_t>(data_, at + 30),
             comment = Get<uint16_t>(data_, at + 32);
    if (end - at - kCentralSize < name + extra + comment)
      return Malformed(at, "a directory record runs past the directory");
    record.name = data_.substr(at + kCentralSize, name);
    ReadZip64(data_.substr(at + kCentralSize + name, extra), record);
    at += kCentralSize + name + extra + comment;
    return record;
  }

  static void ReadZip64(std::string_view extra, Record& record) {
    while (extra.size() >= 4) {
      size_t id = Get<uint16_t>(extra, 0), size = Get<uint16_t>(extra, 2);
      extra.remove_prefix(4);
      if (size > extra.size()) return;
      std::string_view field = extra.substr(0, size);
      extra.remove_prefix(size);
      if (id != 1) continue;
      for (uint64_t* wide : {&record.size, &record.packed, &record.offset}) {
        if (*wide != 0xffffffff) continue;
        if (field.size() < 8) return;
        *wide = Get<uint64_t>(field, 0);
        field.remove_prefix(8);
      }
    }
  }

  // The local header repeats name and extra field with lengths of its own; sizes are taken from the
  // directory.
  Result<Bytes> ReadContent(const Record& record) const {
    uint64_t at = record.offset;
    if (!Holds(at, kLocalSize) || Get<uint32_t>(data_, at) != kLocal)
      return Malformed(std::min<uint64_t>(at, data_.size()),
                       "entry '" + record.name + "' is not at the offset in the directory");
    uint64_t begin =
        at + kLocalSize + Get<uint16_t>(data_, at + 26) + Get<uint16_t>(data_, at + 28);
    if (!Holds(begin, record.packed))
      return Malformed(at, "entry '" + record.name + "' claims " + std::to_string(record.packed) +
                               " bytes, the file ends before");
    if ((record.flags & 1) != 0) return Malformed(at, "entry '" + record.name + "' is encrypted");
    if (record.method == 0) {
      if (record.size != record.packed)
        return Malformed(at, "entry '" + record.name + "' is stored, but its two sizes differ");
      return archive_.Window(begin, record.packed);
    }
    if (record.method == 8) return Inflate(record, begin);
    return Malformed(at, "entry '" + record.name + "' has compression method " +
                             std::to_string(record.method) + ", not stored or deflated");
  }

  Status CheckContent(const Record& record, const Bytes& data) const {
    uint32_t crc = Crc32(0, data.text());
    if (crc == record.crc) return Ok();
    return Malformed(record.offset, "entry '" + record.name + "' is damaged: the CRC-32 of its " +
                                        std::to_string(record.size) + " bytes is " + Hex(crc) +
                                        ", the directory says " + Hex(record.crc));
  }

  Result<Bytes> Inflate(const Record& record, uint64_t begin) const {
#if TOK_HAVE_ZLIB
    if (record.size / kMaxInflation > record.packed)
      return Malformed(record.offset, "entry '" + record.name + "' claims " +
                                          std::to_string(record.size) + " bytes out of " +
                                          std::to_string(record.packed));
    std::vector<std::byte> out(record.size);
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
      return Malformed(record.offset, "zlib cannot be initialized");
    uint64_t in_left = record.packed, out_left = record.size;
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data_.data() + begin));
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    int status = Z_OK;
    while (status == Z_OK) {  // zlib counts in 32 bits
      auto in = static_cast<uInt>(std::min<uint64_t>(in_left, 1u << 30));
      auto room = static_cast<uInt>(std::min<uint64_t>(out_left, 1u << 30));
      stream.avail_in = in;
      stream.avail_out = room;
      status = inflate(&stream, Z_NO_FLUSH);
      in_left -= in - stream.avail_in;
      out_left -= room - stream.avail_out;
      if (status == Z_OK && in == stream.avail_in && room == stream.avail_out) break;
    }
    inflateEnd(&stream);
    if (status != Z_STREAM_END || out_left != 0)
      return Malformed(record.offset, "entry '" + record.name + "' does not inflate to " +
                                          std::to_string(record.size) + " bytes");
    return Bytes::FromVector(std::move(out));
#else
    (void)begin;
    return Malformed(record.offset, "entry '" + record.name +
                                        "' is deflated, and this build has no zlib: save it "
                                        "with numpy.savez");
#endif
  }

  const Bytes& archive_;
  std::string_view data_;
  const std::string& file_;
};

constexpr uint64_t kDosDate = 0x0021;  // 1980-01-01: equal content gives equal files

}  // namespace

Result<std::vector<ZipEntry>> ReadZip(const Bytes& archive, const std::string& file) {
  return ZipReader(archive, file).Read();
}

void ZipWriter::Add(std::string_view name, std::string_view head, std::string_view body) {
  Entry entry{std::string(name), Crc32(Crc32(0, head), body), head.size() + body.size(),
              out_.size()};
  Put(out_, kLocal, 4);
  Put(out_, 45, 2);  // needs zip64
  Put(out_, 0, 6);   // flags, method, time
  Put(out_, kDosDate, 2);
  Put(out_, entry.crc, 4);
  Put(out_, 0xffffffff, 4);
  Put(out_, 0xffffffff, 4);
  Put(out_, name.size(), 2);
  Put(out_, 20, 2);
  out_ += name;
  Put(out_, 1, 2);  // zip64: size, packed size
  Put(out_, 16, 2);
  Put(out_, entry.size, 8);
  Put(out_, entry.size, 8);
  out_ += head;
  out_ += body;
  entries_.push_back(std::move(entry));
}

// Central directory, zip64 end record and locator, then the plain end record with all sizes at
// their maximum, which refers readers to zip64.
std::string ZipWriter::Finish() && {
  if (entries_.empty()) {  // NumPy recognizes an empty archive by this record alone
    Put(out_, kEnd, 4);
    Put(out_, 0, 8);
    Put(out_, 0, 8);
    Put(out_, 0, 2);
    return std::move(out_);
  }
  uint64_t begin = out_.size();
  for (const Entry& entry : entries_) {
    Put(out_, kCentral, 4);
    Put(out_, 45, 2);
    Put(out_, 45, 2);
    Put(out_, 0, 6);
    Put(out_, kDosDate, 2);
    Put(out_, entry.crc, 4);
    Put(out_, 0xffffffff, 4);
    Put(out_, 0xffffffff, 4);
    Put(out_, entry.name.size(), 2);
    Put(out_, 28, 2);
    Put(out_, 0, 10);  // comment, disk, attributes
    Put(out_, 0xffffffff, 4);
    out_ += entry.name;
    Put(out_, 1, 2);
    Put(out_, 24, 2);
    Put(out_, entry.size, 8);
    Put(out_, entry.size, 8);
    Put(out_, entry.offset, 8);
  }
  uint64_t end = out_.size();
  Put(out_, kEnd64, 4);
  Put(out_, kEnd64Size - 12, 8);
  Put(out_, 45, 2);
  Put(out_, 45, 2);
  Put(out_, 0, 8);
  Put(out_, entries_.size(), 8);
  Put(out_, entries_.size(), 8);
  Put(out_, end - begin, 8);
  Put(out_, begin, 8);
  Put(out_, kLocator64, 4);
  Put(out_, 0, 4);
  Put(out_, end, 8);
  Put(out_, 1, 4);
  Put(out_, kEnd, 4);
  Put(out_, 0, 4);
  Put(out_, 0xffff, 2);
  Put(out_, 0xffff, 2);
  Put(out_, 0xffffffff, 4);
  Put(out_, 0xffffffff, 4);
  Put(out_, 0, 2);
  return std::move(out_);
}

}  // namespace tokamak
