#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "text/bytecode_file.h"
#include "text/bytecode_tables.h"

namespace tokamak {

// An op as it stands in the bytecode, without its regions.
struct BytecodeOp {
  uint32_t name = 0;  // into BytecodeFile::ops
  size_t offset = 0;
  BytecodeRef location;
  std::optional<BytecodeRef> attributes;  // a dictionary: what the op does not define itself
  std::optional<BytecodeRef> properties;
  std::vector<BytecodeRef> results;   // types
  std::vector<BytecodeRef> operands;  // values
  uint32_t regions = 0;
};

// Walks the IR section, every byte of it, and tells what it meets in program
// order. Indices are of what the file claims: hooks check what they use.
class BytecodeWalker {
 public:
  explicit BytecodeWalker(const BytecodeFile& file) : file_(file) {}
  virtual ~BytecodeWalker() = default;
  Status Walk();

 protected:
  // Before the op's regions; then its regions; then EndOp.
  virtual Status BeginOp(const BytecodeOp& op) = 0;
  virtual Status EndOp(const BytecodeOp& op) = 0;
  // A region defines `values` values. Isolated: it counts them from 0 and sees
  // none from outside; else they come after those of the enclosing region.
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
  std::vector<BytecodeOp> ops_;  // one per depth, so that their lists are used again
};

}  // namespace tokamak
