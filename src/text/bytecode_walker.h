#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "text/bytecode_file.h"
#include "text/bytecode_tables.h"

namespace tokamak {

// An op of the bytecode, without its regions.
struct BytecodeOp {
  uint32_t name = 0;  // into BytecodeFile::ops
  size_t offset = 0;
  BytecodeRef location;
  // a dictionary of the attributes that the op does not define itself
  std::optional<BytecodeRef> attributes;
  std::optional<BytecodeRef> properties;
  std::vector<BytecodeRef> results;   // types
  std::vector<BytecodeRef> operands;  // values
  uint32_t regions = 0;
};

// Walks the whole IR section and reports ops, regions and blocks to its hooks in program order. The
// indices passed are unchecked file contents: hooks check the ones they use.
class BytecodeWalker {
 public:
  explicit BytecodeWalker(const BytecodeFile& file) : file_(file) {}
  virtual ~BytecodeWalker() = default;
  Status Walk();

 protected:
  // Called before the op's regions; EndOp is called after them.
  virtual Status BeginOp(const BytecodeOp& op) = 0;
  virtual Status EndOp(const BytecodeOp& op) = 0;
  // A region defines `values` values. An isolated region numbers them from 0 and sees no outer
  // values; otherwise they follow those of the enclosing region.
  virtual Status BeginRegion(const BytecodeOp& op, uint64_t values, bool isolated,
                             size_t offset) = 0;
  virtual Status AddArgument(BytecodeRef type, std::optional<BytecodeRef> location) = 0;
  virtual Status EndRegion(size_t offset) = 0;

  const BytecodeFile& file_;

 private:
  Status WalkOp(BytecodeCursor& in);
  Status WalkRegions(BytecodeCursor& in, const BytecodeOp& op, bool isolated);
  Status WalkRegion(BytecodeCursor& in, const BytecodeOp& op, bool isolated);
  Status WalkBlock(BytecodeCursor& in);
  Status ReadRecord(BytecodeCursor& in, BytecodeOp& op, uint8_t& mask);
  Status SkipUseLists(BytecodeCursor& in, size_t values);

  int depth_ = 0;
  std::vector<BytecodeOp> ops_;  // one per depth; their lists are reused
};

}  // namespace tokamak
