// Invalid input to the C++ API gives a descriptive error, never an exception.
#include <cstdio>
#include <string>

#include <tokamak/tokamak.h>

namespace {

using tokamak::Buffer;
using tokamak::Type;

int failed = 0;

// Checks that the error has the code and contains the words.
template <typename T>
void Expect(const tokamak::Result<T>& result, const std::string& code, const std::string& words) {
  if (!result.ok() && result.error().code() == code &&
      result.error().text().find(words) != std::string::npos)
    return;
  ++failed;
  std::printf("expected %s with '%s', got %s\n", code.c_str(), words.c_str(),
              result.ok() ? "no error" : result.error().text().c_str());
}

constexpr char kProgram[] =
    "HloModule m\nENTRY main {\n  x = f32[2,3] parameter(0)\n  n = s32[] parameter(1)\n"
    "  m = s32[2,3] broadcast(n), dimensions={}\n  y = f32[2,3] convert(m)\n"
    "  ROOT r = f32[2,3] add(x, y)\n}\n";

void Read() {
  using tokamak::Module;
  Expect(Module::FromFile("/nowhere/a.mlir"), "TK1005", "/nowhere/a.mlir");
  Expect(Module::FromBytes("nothing of sense"), "TK1001", "");
  Expect(Module::FromBytes(""), "TK1002", "no program");
  auto wrong = Module::FromBytes(
      "HloModule m\nENTRY main {\n  x = f32[2] parameter(0)\n  ROOT y = f32[3] negate(x)\n}\n",
      "wrong.hlo");
  Expect(wrong, wrong.ok() ? "TK" : wrong.error().code(), "wrong.hlo:4");
}

void Buffers() {
  float numbers[6] = {};
  Expect(Buffer::Make({Type::kF32, {2, -1}}), "TK6117", "f32[2,-1]");
  Expect(Buffer::Make({Type::kF32, {int64_t{1} << 40, int64_t{1} << 40}}), "TK6117", "no size");
  Expect(Buffer::Make({Type::kF64, {int64_t{1} << 50}}), "TK5002", "no memory");
  Expect(Buffer::Make({Type::kNone, {}}), "TK6117", "type");
  Expect(Buffer::From<float>({1, 2, 3}, {2}), "TK5009", "got 12");
  Expect(Buffer::Borrow(numbers, 20, {Type::kF32, {6}}), "TK5009", "the memory has 20");
  Expect(Buffer::Borrow(nullptr, 24, {Type::kF32, {6}}), "TK6117", "null");
}

void CompileAndRun() {
  auto module = tokamak::Module::FromBytes(kProgram);
  if (!module.ok()) return Expect(module, "", "");
  Expect(tokamak::Compile(*module, tokamak::Target::kBest, {.named = {{"tokamak_strikt", "1"}}}),
         "TK6106", "tokamak_strict");
  Expect(tokamak::Compile(*module, tokamak::Target::kBest, {.named = {{"tokamak_strict", "7"}}}),
         "TK6107", "True or False");
  auto program = tokamak::Compile(*module);
  if (!program.ok()) return Expect(program, "", "");
  auto x = Buffer::From<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  auto flat = Buffer::From<float>({1, 2, 3, 4, 5, 6}, {6});
  auto n = Buffer::From<int32_t>({7}, {});
  auto u = Buffer::From<uint32_t>({7}, {});
  Expect(program->Run(*x), "TK5009", "has 2 parameters, got 1");
  Expect(program->Run(*flat, *n), "TK5009", "argument 0: it is f32[6], the program has f32[2,3]");
  Expect(program->Run(*x, *u), "TK5009", "argument 1: it is u32[], the program has s32[]");
  Expect(program->Run(*x, Buffer()), "TK5009", "argument 1");
  alignas(4) char odd[25];
  auto crooked = Buffer::Borrow(odd + 1, 24, {Type::kF32, {2, 3}});
  Expect(program->Run(*crooked, *n), "TK5009", "not aligned to 4");
  auto results = program->Run(*x, *n);
  if (!results.ok() || (*results)[0].as<float>()[5] != 13.0f) {
    ++failed;
    std::printf("a good run gave something else\n");
  }
  if ((*results)[0].as<double>().size() != 0) ++failed;  // elements of another width
}

void Build() {
  tokamak::Builder b("m");
  tokamak::Value x = b.Parameter({Type::kF32, {2}});
  tokamak::Value y = b.Op("no-such-op", {x});
  auto module = b.Build({y});
  Expect(module, module.ok() ? "TK" : module.error().code(), "errors.cc:");
}

}  // namespace

int main() {
  Read();
  Buffers();
  CompileAndRun();
  Build();
  std::printf("%d wrong\n", failed);
  return failed == 0 ? 0 : 1;
}
