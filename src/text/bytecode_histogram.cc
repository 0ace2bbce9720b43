#include "text/bytecode_histogram.h"

#include "text/bytecode_ops.h"
#include "text/bytecode_walker.h"

namespace tokamak {
namespace {

class OpHistogram : public BytecodeWalker {
 public:
  explicit OpHistogram(const BytecodeFile& file)
      : BytecodeWalker(file), tables_(file), counts_(file.ops.size()) {
    for (const BytecodeFile::OpName& op : file.ops)
      rows_.push_back(FindBytecodeOp(file.dialects[op.dialect], op.name));
  }

  Result<std::map<std::string, int64_t>> Count() {
    TOK_RETURN_IF_ERROR(tables_.DecodeAll());
    TOK_RETURN_IF_ERROR(Walk());
    std::map<std::string, int64_t> histogram;
    for (size_t i = 0; i < counts_.size(); ++i)
      if (counts_[i] > 0) histogram[file_.NameOf(file_.ops[i])] += counts_[i];
    return histogram;
  }

 private:
  Status BeginOp(const BytecodeOp& op) override {
    ++counts_[op.name];
    TOK_TRY([[maybe_unused]] OriginId origin, tables_.Location(op.location, origins_));
    for (BytecodeRef type : op.results) {
      TOK_TRY([[maybe_unused]] const Shape* shape, tables_.ValueType(type));
    }
    if (op.attributes) {
      TOK_TRY([[maybe_unused]] const BytecodeAttr* attr, tables_.Attribute(*op.attributes));
    }
    const BytecodeOpRow* row = rows_[op.name];
    if (row == nullptr) return Ok();
    TOK_TRY(std::vector<BytecodeRef> properties,
            ReadProperties(file_, file_.ops[op.name].name, *row, op.properties, op.offset));
    for (BytecodeRef property : properties) {
      if (property.index == kAbsent) continue;
      TOK_TRY([[maybe_unused]] const BytecodeAttr* attr, tables_.Attribute(property));
    }
    return Ok();
  }
  Status EndOp(const BytecodeOp&) override { return Ok(); }
  Status BeginRegion(const BytecodeOp&, uint64_t, bool, size_t) override { return Ok(); }
  Status AddArgument(BytecodeRef type, std::optional<BytecodeRef> location) override {
    TOK_TRY([[maybe_unused]] const Shape* shape, tables_.ValueType(type));
    if (!location) return Ok();
    TOK_TRY([[maybe_unused]] OriginId origin, tables_.Location(*location, origins_));
    return Ok();
  }
  Status EndRegion(size_t) override { return Ok(); }

  BytecodeTables tables_;
  OriginTable origins_;
  std::vector<const BytecodeOpRow*> rows_;
  std::vector<int64_t> counts_;
};

}  // namespace

Result<std::map<std::string, int64_t>> BytecodeHistogram(const Bytes& bytes,
                                                         const std::string& file) {
  TOK_TRY(BytecodeFile opened, OpenBytecode(bytes, file));
  return OpHistogram(opened).Count();
}

}  // namespace tokamak
