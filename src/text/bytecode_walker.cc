#include "text/bytecode_walker.h"

#include "support/limits.h"

namespace tokamak {
namespace {

enum OpMask : uint8_t {
  kHasAttributes = 1,
  kHasResults = 2,
  kHasOperands = 4,
  kHasSuccessors = 8,
  kHasRegions = 16,
  kHasUseLists = 32,
  kHasProperties = 64,
};
constexpr uint8_t kIrSection = 4;

BytecodeRef Ref(BytecodeCursor& in) {
  const size_t from = in.offset();
  return {in.Varint(), from};
}

void ReadRefs(BytecodeCursor& in, std::vector<BytecodeRef>& out) {
  const size_t count = in.Count();
  out.resize(count);
  for (BytecodeRef& ref : out) ref = Ref(in);
}

}  // namespace

Status BytecodeWalker::Walk() {
  ops_.resize(static_cast<size_t>(kMaxNesting) + 1);
  BytecodeCursor in = file_.At(file_.ir);
  const size_t start = in.offset();
  const uint64_t header = in.Varint();
  if (!in.failed() && header != 2) {
    return file_.ErrorAt(ErrorCode::kBytecodeRegion,
                         "bytecode: one module without arguments is expected, " +
                             std::to_string(header >> 1) + " ops are there",
                         start);
  }
  TOK_RETURN_IF_ERROR(file_.Whole(in, "ir section"));
  TOK_RETURN_IF_ERROR(WalkOp(in));
  return file_.Finish(in, "ir section");
}

Status BytecodeWalker::WalkOp(BytecodeCursor& in) {
  if (depth_ >= kMaxNesting) {
    return file_.ErrorAt(ErrorCode::kTooDeep,
                         "bytecode: ops are nested deeper than " + std::to_string(kMaxNesting),
                         in.offset());
  }
  BytecodeOp& op = ops_[static_cast<size_t>(depth_)];
  uint8_t mask = 0;
  TOK_RETURN_IF_ERROR(ReadRecord(in, op, mask));
  uint64_t regions = 0;
  if ((mask & kHasRegions) != 0) {
    const size_t start = in.offset();
    regions = in.Varint();
    op.regions = static_cast<uint32_t>(in.CheckCount(regions >> 1, 1, start));
    TOK_RETURN_IF_ERROR(file_.Whole(in, "op"));
  }
  TOK_RETURN_IF_ERROR(BeginOp(op));
  if ((mask & kHasRegions) != 0) {
    ++depth_;
    TOK_RETURN_IF_ERROR(WalkRegions(in, op, (regions & 1) != 0));
    --depth_;
  }
  return EndOp(op);
}

// All regions of an isolated op lie in one section.
Status BytecodeWalker::WalkRegions(BytecodeCursor& in, const BytecodeOp& op, bool isolated) {
  if (!isolated) {
    for (uint32_t i = 0; i < op.regions; ++i) TOK_RETURN_IF_ERROR(WalkRegion(in, op, false));
    return Ok();
  }
  const size_t start = in.offset();
  const uint8_t id = in.Byte();
  BytecodeCursor nested = in.Nested(in.Varint());
  TOK_RETURN_IF_ERROR(file_.Whole(in, "op"));
  if (id != kIrSection) {
    return file_.ErrorAt(ErrorCode::kBytecodeSection,
                         "bytecode: section " + std::to_string(id) + " instead of regions", start);
  }
  for (uint32_t i = 0; i < op.regions; ++i) TOK_RETURN_IF_ERROR(WalkRegion(nested, op, true));
  return file_.Finish(nested, "section of regions");
}

Status BytecodeWalker::ReadRecord(BytecodeCursor& in, BytecodeOp& op, uint8_t& mask) {
  op.offset = in.offset();
  const uint64_t name = in.Varint();
  mask = in.Byte();
  op.location = Ref(in);
  op.attributes.reset();
  op.properties.reset();
  op.results.clear();
  op.operands.clear();
  op.regions = 0;
  if ((mask & kHasAttributes) != 0) op.attributes = Ref(in);
  if ((mask & kHasProperties) != 0) op.properties = Ref(in);
  if ((mask & kHasResults) != 0) ReadRefs(in, op.results);
  if ((mask & kHasOperands) != 0) ReadRefs(in, op.operands);
  TOK_RETURN_IF_ERROR(file_.Whole(in, "op"));
  if (name >= file_.ops.size()) {
    return file_.ErrorAt(
        ErrorCode::kBytecodeIndex,
        "bytecode: op name " + std::to_string(name) + " of " + std::to_string(file_.ops.size()),
        op.offset);
  }
  op.name = static_cast<uint32_t>(name);
  if ((mask & 0x80) != 0 || (mask & kHasSuccessors) != 0) {
    return file_.ErrorAt(ErrorCode::kBytecodeRegion,
                         file_.NameOf(file_.ops[name]) + ": branches to other blocks", op.offset);
  }
  if ((mask & kHasUseLists) != 0) return SkipUseLists(in, op.results.size());
  return Ok();
}

// Use-list order is an artifact of the writer's memory; it is skipped.
Status BytecodeWalker::SkipUseLists(BytecodeCursor& in, size_t values) {
  const size_t lists = values == 1 ? 1 : in.Count();
  for (size_t i = 0; i < lists && !in.failed(); ++i) {
    if (values != 1) in.Varint();
    const size_t start = in.offset();
    const uint64_t tagged = in.Varint();
    for (size_t n = in.CheckCount(tagged >> 1, 1, start); n > 0; --n) in.Varint();
  }
  return file_.Whole(in, "use lists");
}

Status BytecodeWalker::WalkRegion(BytecodeCursor& in, const BytecodeOp& op, bool isolated) {
  const size_t start = in.offset();
  const uint64_t blocks = in.Varint();
  const uint64_t values = blocks == 0 ? 0 : in.Count();
  TOK_RETURN_IF_ERROR(file_.Whole(in, "region"));
  if (blocks != 1) {
    return file_.ErrorAt(ErrorCode::kBytecodeRegion,
                         file_.NameOf(file_.ops[op.name]) + ": a region has " +
                             std::to_string(blocks) + " blocks, one is expected",
                         start);
  }
  TOK_RETURN_IF_ERROR(BeginRegion(op, values, isolated, start));
  TOK_RETURN_IF_ERROR(WalkBlock(in));
  return EndRegion(in.offset());
}

Status BytecodeWalker::WalkBlock(BytecodeCursor& in) {
  const size_t start = in.offset();
  const uint64_t header = in.Varint();
  if ((header & 1) != 0) {
    const size_t count = in.Count();
    for (size_t i = 0; i < count; ++i) {
      BytecodeRef type = Ref(in);
      std::optional<BytecodeRef> location;
      if ((type.index & 1) != 0) location = Ref(in);
      type.index >>= 1;
      TOK_RETURN_IF_ERROR(file_.Whole(in, "block"));
      TOK_RETURN_IF_ERROR(AddArgument(type, location));
    }
    if (in.Byte() != 0) TOK_RETURN_IF_ERROR(SkipUseLists(in, count));
  }
  const size_t ops = in.CheckCount(header >> 1, 3, start);
  TOK_RETURN_IF_ERROR(file_.Whole(in, "block"));
  for (size_t i = 0; i < ops; ++i) TOK_RETURN_IF_ERROR(WalkOp(in));
  return Ok();
}

}  // namespace tokamak
