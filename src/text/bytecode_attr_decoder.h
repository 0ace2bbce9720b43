#pragma once

// Decodes one attribute. Only the .cc files of BytecodeTables include this.

#include <span>
#include <string>
#include <string_view>

#include "text/bytecode_tables.h"

namespace tokamak {

class BytecodeTables::AttrDecoder {
 public:
  AttrDecoder(BytecodeTables& tables, const BytecodeFile::Entry& entry)
      : tables_(tables), file_(tables.file_), entry_(entry), in_(tables.file_.At(entry)) {}
  // Decodes the entry up to its last byte.
  Result<BytecodeAttr> Decode();
  // Whether a code of builtin is a location.
  static bool IsLocation(uint64_t code) { return (code >= 10 && code <= 15) || code == 22; }

 private:
  // Each function decodes the fields that follow the code into out_.
  Status Vhlo(uint64_t code);
  Status VhloMesh(uint64_t code);
  Status Builtin(uint64_t code);
  Status Sdy(uint64_t code);
  Status SdyAxisRef();
  Status SdyDimension();
  Status SdySharding(uint64_t code);
  Status SdyRule();
  Status Location(uint64_t code);
  Status Dictionary();
  Status Integer();
  Status Float();
  Status Enum(uint64_t code);
  Status Tensor();
  Status TypeAttr();
  Status OutputAlias();
  Status ResultAccuracy();
  Status DenseArray();
  Status Record(std::string kind, AttrDict fields);

  Status SetList(AttrDict& fields, std::string name, bool keep_empty);

  Result<AttrList> List();
  Result<AttrValue> SignedList();
  Result<const BytecodeAttr*> Child();
  Result<const BytecodeAttr*> Child(BytecodeRef ref);
  Result<std::string_view> StringAt();
  Status AddWeight(uint64_t weight);
  Error ErrorAt(ErrorCode code, std::string message, size_t offset) const;
  Error Unknown(uint64_t code) const;
  static bool IsFloatType(const BytecodeType& type);
  static Bytes Cleaned(Bytes data, ElementType type);
  BytecodeRef Ref() {
    const size_t from = in_.offset();
    return {in_.Varint(), from};
  }

  BytecodeTables& tables_;
  const BytecodeFile& file_;
  const BytecodeFile::Entry& entry_;
  BytecodeCursor in_;
  BytecodeAttr out_;
};

}  // namespace tokamak
