#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/result.h"

namespace tokamak {

// A reader of protocol-buffer messages, as far as the ABI has them: fields are walked in order,
// each at a known place of the bytes. Nothing is allocated.
class ProtoReader {
 public:
  // `offset`: where `bytes` begin in the whole, for messages.
  explicit ProtoReader(std::string_view bytes, size_t offset = 0) : bytes_(bytes), base_(offset) {}

  enum Wire : uint8_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };
  struct Field {
    uint32_t number = 0;
    Wire wire = kVarint;
    uint64_t bits = 0;      // of a number
    std::string_view data;  // of kLength
    size_t offset = 0;      // of `data` in the whole
    int64_t AsInt() const { return static_cast<int64_t>(bits); }
    bool AsBool() const { return bits != 0; }
    double AsDouble() const;  // of kFixed64
    float AsFloat() const;    // of kFixed32
    ProtoReader Message() const { return ProtoReader(data, offset); }
  };

  bool AtEnd() const { return at_ == bytes_.size(); }
  // TK6105.
  Result<Field> Next();
  // A number of a packed list.
  Result<uint64_t> Varint();
  Error Fault(const std::string& what) const;

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
