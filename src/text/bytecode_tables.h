#pragma once

// The attribute and type tables of a bytecode file, decoded lazily into IR shapes and attributes.

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

// The decoded meaning of a bytecode type.
struct BytecodeType {
  enum class Kind : uint8_t {
    kValue,     // the type of a value: array, tuple, token ...
    kElement,   // f32, quantized i8: `shape` is a scalar of that type
    kIndex,     // `shape` is an s64 scalar
    kFunction,  // `inputs` and `results`
    kOther,     // none, tf32 ...: only a name
  };
  Kind kind = Kind::kOther;
  Shape shape;
  std::string name;  // in MLIR's spelling; set for kElement, kIndex and kOther
  std::vector<Shape> inputs, results;
  uint32_t weight = 1;
};

// A decoded attribute. `type` is set if the attribute is a type.
struct BytecodeAttr {
  AttrValue value;
  const BytecodeType* type = nullptr;
  uint32_t weight = 1;
};

// A reference to an attribute or type, and the file position of the reference.
struct BytecodeRef {
  uint64_t index = 0;
  size_t from = 0;
};

// The attributes and types of a file. Each is decoded on first use and cached. Entries refer to
// others by number, so a few bytes can expand to a very large value: a cycle is an error, and
// weights (about 64 bytes of memory each) are limited per entry (kMaxAttributeWeight) and in total
// (by the size of the file).
class BytecodeTables {
 public:
  // `file` must outlive the tables.
  explicit BytecodeTables(const BytecodeFile& file);

  Result<const BytecodeType*> Type(BytecodeRef ref) {
    if (ref.index < types_.size() && types_[ref.index] != nullptr) [[likely]]
      return types_[ref.index].get();
    return SlowType(ref);
  }
  // Requires a type that a value can have.
  Result<const Shape*> ValueType(BytecodeRef ref);
  // Like ValueType, but returns null if the type is not decoded yet or is not a value type.
  const Shape* KnownValueType(uint64_t index) const {
    if (index >= types_.size() || types_[index] == nullptr) return nullptr;
    return types_[index]->kind == BytecodeType::Kind::kValue ? &types_[index]->shape : nullptr;
  }
  Result<const BytecodeAttr*> Attribute(BytecodeRef ref) {
    if (ref.index < attributes_.size() && attributes_[ref.index] != nullptr) [[likely]]
      return attributes_[ref.index].get();
    return SlowAttribute(ref);
  }
  // Returns the attribute as a string, TK1216 if it is not a string.
  Result<std::string_view> String(BytecodeRef ref);

  // Returns the origin that a location denotes.
  Result<OriginId> Location(BytecodeRef ref, OriginTable& origins);

  // Charges the memory that the attributes need when they are copied.
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
  // Origins of locations, indexed by attribute number; kUnknown if not decoded yet.
  static constexpr uint32_t kUnknown = UINT32_MAX;
  std::vector<uint32_t> origins_, frames_;
};

}  // namespace tokamak
