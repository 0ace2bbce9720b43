#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/result.h"

namespace tokamak {

// A parser for the protocol-buffer messages of the ABI. Fields are visited in order, each with its
// byte offset. Does not allocate.
class ProtoReader {
 public:
  // `offset`: position of `bytes` in the whole message, for error messages.
  explicit ProtoReader(std::string_view bytes, size_t offset = 0) : bytes_(bytes), base_(offset) {}

  enum Wire : uint8_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };
  struct Field {
    uint32_t number = 0;
    Wire wire = kVarint;
    uint64_t bits = 0;      // of a numeric field
    std::string_view data;  // kLength only
    size_t offset = 0;      // of `data` in the whole message
    int64_t AsInt() const { return static_cast<int64_t>(bits); }
    bool AsBool() const { return bits != 0; }
    double AsDouble() const;  // kFixed64 only
    float AsFloat() const;    // kFixed32 only
    ProtoReader Message() const { return ProtoReader(data, offset); }
  };

  bool AtEnd() const { return at_ == bytes_.size(); }
  // Returns TK6105 for malformed bytes.
  Result<Field> Next();
  // The next number of a packed list.
  Result<uint64_t> Varint();
  Error FormatError(const std::string& what) const;

 private:
  Result<uint64_t> Fixed(size_t width);

  std::string_view bytes_;
  size_t at_ = 0, base_;
};

// Appends a field to a message.
void PutVarint(std::string& out, uint64_t value);
void PutInt(std::string& out, uint32_t number, int64_t value);
void PutBytes(std::string& out, uint32_t number, std::string_view bytes);

}  // namespace tokamak
