#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attr_value.h"
#include "ir/origin.h"
#include "ir/shape.h"
#include "text/bytecode_file.h"

namespace tokamak {

// What a type of the bytecode means here.
struct BytecodeType {
  enum class Kind : uint8_t {
    kValue,     // what a value can have: array, tuple, token ...
    kElement,   // f32, quantized i8: `shape` is the scalar of it
    kIndex,     // `shape` is an s64 scalar
    kFunction,  // `inputs` and `results`
    kOther,     // none, tf32 ...: has only a name
  };
  Kind kind = Kind::kOther;
  Shape shape;
  std::string name;  // in MLIR's spelling; of kElement, kIndex and kOther
  std::vector<Shape> inputs, results;
  uint32_t weight = 1;
};

// An attribute, and for an attribute that is a type, that type.
struct BytecodeAttr {
  AttrValue value;
  const BytecodeType* type = nullptr;
  uint32_t weight = 1;
};

// A reference to an attribute or type, and where it stands.
struct BytecodeRef {
  uint64_t index = 0;
  size_t from = 0;
};

// The attributes and types of a file, each decoded when it is first asked for
// and then kept. Entries hold others by number, so a few bytes can stand for
// very much: a cycle is an error, and weights (about 64 bytes of memory each)
// are limited for one entry (kMaxAttributeWeight) and for all (by the size of
// the file).
class BytecodeTables {
 public:
  // `file` must outlive the tables.
  explicit BytecodeTables(const BytecodeFile& file);

  Result<const BytecodeType*> Type(BytecodeRef ref) {
    if (ref.index < types_.size() && types_[ref.index] != nullptr) [[likely]]
      return types_[ref.index].get();
    return SlowType(ref);
  }
  // A type that a value can have.
  Result<const Shape*> ValueType(BytecodeRef ref);
  // The same without an error: null when it is not decoded yet, or no such type.
  const Shape* KnownValueType(uint64_t index) const {
    if (index >= types_.size() || types_[index] == nullptr) return nullptr;
    return types_[index]->kind == BytecodeType::Kind::kValue ? &types_[index]->shape : nullptr;
  }
  Result<const BytecodeAttr*> Attribute(BytecodeRef ref) {
    if (ref.index < attributes_.size() && attributes_[ref.index] != nullptr) [[likely]]
      return attributes_[ref.index].get();
    return SlowAttribute(ref);
  }
  // The attribute as a string; TK1216 when it is none.
  Result<std::string_view> String(BytecodeRef ref);

  // The origin that a location stands for.
  Result<OriginId> Location(BytecodeRef ref, OriginTable& origins);

  // Counts memory that the attributes take when they are copied.
  Status Charge(uint64_t weight, size_t from);
  // Decodes every entry, used or not.
  Status DecodeAll();

  const BytecodeFile& file() const { return file_; }

 private:
  class AttrDecoder;
  class TypeDecoder;
  class LocationDecoder;

  Result<const BytecodeType*> SlowType(BytecodeRef ref);
  Result<const BytecodeAttr*> SlowAttribute(BytecodeRef ref);

  const BytecodeFile& file_;
  uint64_t budget_;
  int depth_ = 0, location_depth_ = 0;
  std::vector<std::unique_ptr<BytecodeType>> types_;
  std::vector<std::unique_ptr<BytecodeAttr>> attributes_;
  std::vector<bool> open_types_, open_attributes_;  // being decoded
  // Of locations, by number of the attribute; kUnknown: not decoded yet.
  static constexpr uint32_t kUnknown = UINT32_MAX;
  std::vector<uint32_t> origins_, frames_;
};

}  // namespace tokamak
