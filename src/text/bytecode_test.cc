#include <gtest/gtest.h>

#include "ir/infer.h"
#include "text/bytecode_histogram.h"
#include "text/read.h"

// The tests encode small programs themselves: the repository contains no bytecode files.

namespace tokamak {
namespace {

std::string Varint(uint64_t value) {
  std::string out;
  for (int extra = 0; extra < 8; ++extra) {
    if (value >> (7 * (extra + 1)) != 0) continue;
    const uint64_t word = (value << (extra + 1)) | (uint64_t{1} << extra);
    for (int i = 0; i <= extra; ++i) out += static_cast<char>(word >> (8 * i));
    return out;
  }
  out += '\0';
  for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}
std::string Signed(int64_t value) {
  return Varint((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
}
std::string List(const std::vector<std::string>& items) {
  std::string out = Varint(items.size());
  for (const std::string& item : items) out += item;
  return out;
}
std::string Section(int id, const std::string& body) {
  return std::string(1, static_cast<char>(id)) + Varint(body.size()) + body;
}

enum { kBuiltin, kVhlo };
struct Entry {
  int dialect;
  std::string body;
};

// The components of a file; the default `main` is a function (tensor<2xf32>) -> tensor<2xf32>.
struct Program {
  uint64_t version = 6;
  std::string producer = "StableHLO_v1.16.2";
  std::vector<std::string> strings = {"builtin",   "vhlo", "module", "func_v1",    "add_v1",
                                      "return_v1", "main", "public", "constant_v1"};
  std::string op = "add_v1";  // string 4
  // 0 unknown location, 1 empty array, 2 function type, 3 "main", 4 "public".
  std::vector<Entry> attributes = {{kBuiltin, Varint(15)},
                                   {kVhlo, Varint(1) + Varint(0)},
                                   {kVhlo, Varint(17) + Varint(2)},
                                   {kVhlo, Varint(14) + Varint(6)},
                                   {kVhlo, Varint(14) + Varint(7)}};
  // 0 f32, 1 tensor<2xf32>, 2 its function type.
  std::vector<Entry> types = {{kVhlo, Varint(4)},
                              {kVhlo, Varint(20) + List({Signed(2)}) + Varint(0)},
                              {kVhlo, Varint(8) + List({Varint(1)}) + List({Varint(1)})}};
  // 0 module's, 1 main's.
  std::vector<std::string> properties = {Varint(0) + Varint(0),
                                         Varint(1) + Varint(2) + Varint(1) + Varint(3) + Varint(4)};
  // add(arg0, arg0); return
  std::string ops = Varint(2) + '\x06' + Varint(0) + List({Varint(1)}) +
                    List({Varint(0), Varint(0)}) + Varint(3) + '\x04' + Varint(0) +
                    List({Varint(1)});
  size_t op_count = 2, value_count = 2;

  std::string Groups(const std::vector<Entry>& entries) const {
    std::string out;
    for (const Entry& e : entries)
      out += Varint(static_cast<uint64_t>(e.dialect)) + Varint(1) + Varint(e.body.size() << 1 | 1);
    return out;
  }
  std::string Encode() const {
    std::string body = Varint(1) + Varint(value_count) + Varint(op_count << 1 | 1) +
                       List({Varint(1 << 1)}) + '\0' + ops;
    std::string func = Varint(1) + '\x50' + Varint(0) + Varint(1) + Varint(3) + Section(4, body);
    std::string inside = Varint(1) + Varint(0) + Varint(1 << 1) + func;
    std::string ir = Varint(1 << 1) + Varint(0) + '\x50' + Varint(0) + Varint(0) + Varint(3) +
                     Section(4, inside);
    std::string dialects = List({Varint(0 << 1), Varint(1 << 1)}) + Varint(5);
    dialects += Varint(kBuiltin) + List({Varint(2 << 1 | 1)});
    dialects += Varint(kVhlo) + List({Varint(3 << 1 | 1), Varint(4 << 1 | 1), Varint(5 << 1 | 1),
                                      Varint(8 << 1 | 1)});
    std::string entries, chars, lengths, props;
    for (const auto* table : {&attributes, &types})
      for (const Entry& e : *table) entries += e.body;
    std::vector<std::string> texts = strings;
    texts[4] = op;
    for (const std::string& text : texts) {
      chars += text + '\0';
      lengths = Varint(text.size() + 1) + lengths;
    }
    for (const std::string& p : properties) props += Varint(p.size()) + p;
    return "ML\xefR" + Varint(version) + producer + '\0' + Section(1, dialects) +
           Section(3, Varint(attributes.size()) + Varint(types.size()) + Groups(attributes) +
                          Groups(types)) +
           Section(2, entries) + Section(4, ir) + Section(6, Varint(0)) + Section(5, "") +
           Section(0, Varint(strings.size()) + lengths + chars) +
           Section(8, Varint(properties.size()) + props);
  }
};

Result<std::unique_ptr<Module>> Read(const std::string& bytes) {
  return ReadMlirBytecode(Bytes::FromString(bytes), "test.mlirbc");
}

// Returns the error of a program that must be rejected; its position must lie in the file.
Error ErrorOf(const Program& program) {
  const std::string bytes = program.Encode();
  auto module = Read(bytes);
  EXPECT_FALSE(module.ok());
  if (module.ok()) return {};
  EXPECT_GE(module.error().where.offset, 0);
  EXPECT_LE(module.error().where.offset, static_cast<int64_t>(bytes.size()));
  return module.error();
}

TEST(Bytecode, ReadsASmallProgram) {
  const std::string bytes = Program().Encode();
  auto module = Read(bytes);
  ASSERT_TRUE(module.ok()) << Render(module.error());
  const Computation* main = module.value()->entry();
  ASSERT_NE(main, nullptr);
  EXPECT_EQ(main->name(), "main");
  EXPECT_EQ(main->root()->op(), Op::kAdd);
  EXPECT_EQ(ToString(main->root()->shape()), "f32[2]");
  EXPECT_TRUE(VerifyModule(*module.value()).ok());
  auto counts = BytecodeHistogram(Bytes::FromString(bytes), "test.mlirbc");
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(counts.value().at("vhlo.add_v1"), 1);
  EXPECT_EQ(counts.value().at("builtin.module"), 1);
}

TEST(Bytecode, EveryTruncationIsALocatedError) {
  const std::string bytes = Program().Encode();
  for (size_t size = 4; size < bytes.size(); ++size) {
    auto module = Read(bytes.substr(0, size));
    ASSERT_FALSE(module.ok()) << size;
    EXPECT_GE(module.error().where.offset, 0) << size;
    EXPECT_LE(module.error().where.offset, static_cast<int64_t>(size));
  }
}

TEST(Bytecode, EveryFlippedBitIsSurvived) {
  const std::string bytes = Program().Encode();
  for (size_t bit = 32; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    auto module = Read(flipped);
    if (module.ok()) continue;
    EXPECT_GE(module.error().where.offset, 0) << bit;
  }
}

TEST(Bytecode, SaysTheVersionThatItDoesNotRead) {
  Program old;
  old.version = 4;
  Error error = ErrorOf(old);
  EXPECT_EQ(error.code, ErrorCode::kBytecodeVersion);
  EXPECT_NE(error.message.find("version 4"), std::string::npos) << error.message;
  Program early;
  early.producer = "StableHLO_v0.19.3";
  error = ErrorOf(early);
  EXPECT_EQ(error.code, ErrorCode::kVhloVersion);
  EXPECT_NE(error.message.find("0.19.3"), std::string::npos) << error.message;
}

TEST(Bytecode, NamesAnOpThatIsTooNew) {
  Program program;
  program.op = "add_v7";
  const Error error = ErrorOf(program);
  EXPECT_EQ(error.code, ErrorCode::kBytecodeOp);
  EXPECT_NE(error.message.find("vhlo.add_v7"), std::string::npos) << error.message;
}

TEST(Bytecode, SelfReferentialAttributesAreRejected) {
  Program program;
  program.attributes[1].body = Varint(1) + List({Varint(1)});
  EXPECT_EQ(ErrorOf(program).code, ErrorCode::kBytecodeCycle);
}

TEST(Bytecode, ExplodingAttributesAreRejected) {
  Program program;
  // Each array holds the next one twice: 2^60 entries.
  program.attributes[1].body = Varint(1) + List({Varint(5), Varint(5)});
  for (uint64_t i = 6; i < 66; ++i)
    program.attributes.push_back({kVhlo, Varint(1) + List({Varint(i), Varint(i)})});
  program.attributes.push_back({kVhlo, Varint(1) + Varint(0)});
  EXPECT_EQ(ErrorOf(program).code, ErrorCode::kTooLarge);
}

TEST(Bytecode, ValuesMustBeDefinedBeforeTheyAreUsed) {
  Program program;
  program.ops = Varint(2) + '\x06' + Varint(0) + List({Varint(1)}) + List({Varint(0), Varint(1)}) +
                Varint(3) + '\x04' + Varint(0) + List({Varint(1)});
  EXPECT_EQ(ErrorOf(program).code, ErrorCode::kBytecodeValue);
}

// A program that returns a constant of tensor<dims x code> with the given bytes.
Program ConstantProgram(const std::vector<std::string>& dims, uint64_t code,
                        const std::string& blob) {
  Program program;
  program.types.push_back({kVhlo, Varint(code)});
  program.types.push_back({kVhlo, Varint(20) + List(dims) + Varint(3)});
  program.types[2].body = Varint(8) + List({Varint(1)}) + List({Varint(4)});
  program.attributes.push_back({kVhlo, Varint(15) + Varint(4) + Varint(blob.size()) + blob});
  program.properties.push_back(Varint(5));
  program.ops = Varint(4) + '\x42' + Varint(0) + Varint(2) + List({Varint(4)}) + Varint(3) +
                '\x04' + Varint(0) + List({Varint(1)});
  return program;
}

Literal ConstantOf(const Program& program) {
  auto module = Read(program.Encode());
  EXPECT_TRUE(module.ok()) << Render(module.error());
  if (!module.ok()) return {};
  return module.value()->entry()->root()->attrs<ConstantAttrs>().literal;
}

TEST(Bytecode, ConstantsOfBitsAreUnpacked) {
  Literal bits = ConstantOf(ConstantProgram({Signed(10)}, 0, std::string("\x05\x02", 2)));
  ASSERT_FALSE(bits.is_splat());
  for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(bits.IntAt(i), i == 0 || i == 2 || i == 9) << i;
  Literal all = ConstantOf(ConstantProgram({Signed(1000)}, 0, "\xff"));
  EXPECT_TRUE(all.is_splat());
  EXPECT_EQ(all.IntAt(999), 1);
  Literal few = ConstantOf(ConstantProgram({Signed(3)}, 0, "\xff"));
  EXPECT_TRUE(few.is_splat());
  EXPECT_EQ(few.IntAt(2), 1);
}

TEST(Bytecode, ConstantsOfOneElementAreSplats) {
  Literal splat =
      ConstantOf(ConstantProgram({Signed(int64_t{1} << 50)}, 13, std::string("\x07\0\0\0", 4)));
  EXPECT_TRUE(splat.is_splat());
  EXPECT_EQ(splat.IntAt(123456789), 7);
  Literal nibble = ConstantOf(ConstantProgram({Signed(2)}, 10, "\xfe\x01"));
  EXPECT_EQ(nibble.IntAt(0), -2);
  EXPECT_EQ(nibble.BitsAt(0), 14u);
}

TEST(Bytecode, ConstantsOfTheWrongSizeAreRejected) {
  EXPECT_EQ(ErrorOf(ConstantProgram({Signed(3)}, 13, "12345678")).code,
            ErrorCode::kBytecodeConstant);
  EXPECT_EQ(ErrorOf(ConstantProgram({Signed(-3)}, 13, "1234")).code, ErrorCode::kBytecodeNumber);
}

}  // namespace
}  // namespace tokamak
