#include "pjrt/proto.h"

#include <bit>
#include <cstring>

namespace tokamak {

double ProtoReader::Field::AsDouble() const {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

float ProtoReader::Field::AsFloat() const {
  return std::bit_cast<float>(static_cast<uint32_t>(bits));
}

Error ProtoReader::FormatError(const std::string& what) const {
  return MakeError(ErrorCode::kCompileOptions, "compile options: " + what,
                   {.file = "compile options", .offset = static_cast<int64_t>(base_ + at_)});
}

Result<uint64_t> ProtoReader::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (AtEnd()) return FormatError("a number is truncated");
    auto byte = static_cast<uint8_t>(bytes_[at_++]);
    value |= uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return FormatError("a number has more than 10 bytes");
}

Result<uint64_t> ProtoReader::Fixed(size_t width) {
  if (bytes_.size() - at_ < width) return FormatError("a number is truncated");
  uint64_t value = 0;
  std::memcpy(&value, bytes_.data() + at_, width);
  at_ += width;
  return value;
}

Result<ProtoReader::Field> ProtoReader::Next() {
  TOK_TRY(uint64_t key, Varint());
  Field field;
  field.number = static_cast<uint32_t>(key >> 3);
  field.wire = static_cast<Wire>(key & 7);
  if (field.number == 0 || key >> 3 > UINT32_MAX) return FormatError("a field has no number");
  switch (field.wire) {
    case kVarint: {
      TOK_TRY(field.bits, Varint());
      return field;
    }
    case kFixed64: {
      TOK_TRY(field.bits, Fixed(8));
      return field;
    }
    case kFixed32: {
      TOK_TRY(field.bits, Fixed(4));
      return field;
    }
    case kLength: {
      TOK_TRY(uint64_t size, Varint());
      if (size > bytes_.size() - at_)
        return FormatError("field " + std::to_string(field.number) + " claims " +
                           std::to_string(size) + " bytes, " + std::to_string(bytes_.size() - at_) +
                           " are left");
      field.offset = base_ + at_;
      field.data = bytes_.substr(at_, size);
      at_ += size;
      return field;
    }
  }
  return FormatError("field " + std::to_string(field.number) + " has wire type " +
                     std::to_string(key & 7));
}

void PutVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
}

void PutInt(std::string& out, uint32_t number, int64_t value) {
  PutVarint(out, uint64_t{number} << 3);
  PutVarint(out, static_cast<uint64_t>(value));
}

void PutBytes(std::string& out, uint32_t number, std::string_view bytes) {
  PutVarint(out, uint64_t{number} << 3 | ProtoReader::kLength);
  PutVarint(out, bytes.size());
  out += bytes;
}

}  // namespace tokamak
