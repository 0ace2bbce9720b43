// Every primitive on every type, scalar and in vectors, compared with EvaluatePrim bit by bit.

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "backend/cpu/codegen.h"
#include "kernel/builder.h"
#include "support/splitmix.h"

namespace tokamak::cpu {
namespace {

constexpr int64_t kCount = 192;  // a multiple of all lane counts

struct Case {
  Prim prim{};
  ScalarType type{}, from{};
  int64_t lanes = 1;
};

std::string NameOf(const Case& c) {
  return std::string(InfoOf(c.prim).text) + " " + std::string(InfoOf(c.from).text) + " -> " +
         std::string(InfoOf(c.type).text) + ", " + std::to_string(c.lanes) + " lanes";
}

const std::vector<ScalarType>& Types() {
  static const auto* types = new std::vector<ScalarType>{
      ScalarType::kPred, ScalarType::kS8,  ScalarType::kS16, ScalarType::kS32,  ScalarType::kS64,
      ScalarType::kU8,   ScalarType::kU16, ScalarType::kU32, ScalarType::kU64,  ScalarType::kF16,
      ScalarType::kBF16, ScalarType::kF32, ScalarType::kF64, ScalarType::kIndex};
  return *types;
}

bool Takes(PrimOperands operands, ScalarType type) {
  switch (operands) {
    case PrimOperands::kAny:
      return true;
    case PrimOperands::kIndexOnly:
      return false;
    case PrimOperands::kNumber:
      return type != ScalarType::kPred;
    case PrimOperands::kInteger:
      return IsInteger(type);
    case PrimOperands::kFloat:
      return IsFloat(type);
    case PrimOperands::kBits:
      return !IsFloat(type);
  }
  return false;
}

std::vector<Case> AllCases(std::initializer_list<int64_t> all_lanes) {
  std::vector<Case> cases;
  for (Prim prim : {
#define TOK_PRIM(id, text, arity, operands, result, meaning) Prim::k##id,
#include "kernel/prims.def"
       }) {
    const PrimInfo& info = InfoOf(prim);
    if (prim == Prim::kExp2) continue;  // GPU only
    if (info.arity == 0 || prim == Prim::kLoad || IsOrdered(prim)) continue;
    for (ScalarType from : Types()) {
      if (!Takes(info.operands, from)) continue;
      for (int64_t lanes : all_lanes) {
        if (prim == Prim::kConvert || prim == Prim::kBitcast) {
          for (ScalarType to : Types()) {
            bool fits = prim == Prim::kConvert ? to != ScalarType::kPred
                                               : InfoOf(to).bits == InfoOf(from).bits;
            if (fits && to != from) cases.push_back({prim, to, from, lanes});
          }
        } else {
          ScalarType type = info.result == PrimResult::kPred ? ScalarType::kPred : from;
          cases.push_back({prim, type, from, lanes});
        }
      }
    }
  }
  return cases;
}

Kernel KernelOf(const Case& c) {
  KernelBuilder b("prim");
  int arity = InfoOf(c.prim).arity;
  std::vector<ArrayId> inputs;
  for (int i = 0; i < arity; ++i) {
    ScalarType type = c.prim == Prim::kSelect && i == 0 ? ScalarType::kPred : c.from;
    inputs.push_back(b.Argument(
        {.name = "x", .type = type, .access = Access::kRead, .size = kCount, .alignment = 8}));
  }
  ArrayId out = b.Argument(
      {.name = "y", .type = c.type, .access = Access::kWrite, .size = kCount, .alignment = 8});
  b.For("i", LoopRole::kGrid, b.Index(kCount / c.lanes), [&](Scalar i) {
    b.For("l", LoopRole::kVector, b.Index(c.lanes), [&](Scalar lane) {
      Scalar at = i * b.Index(c.lanes) + lane;
      std::vector<Scalar> v;
      for (ArrayId input : inputs) v.push_back(b.Load(input, at));
      Scalar result;
      if (arity == 1) result = b.Make(c.prim, c.type, {v[0]});
      if (arity == 2) result = b.Make(c.prim, c.type, {v[0], v[1]});
      if (arity == 3) result = b.Make(c.prim, c.type, {v[0], v[1], v[2]});
      b.Store(out, at, result);
    });
  });
  return b.Finish();
}

Bits Drawn(ScalarType type, SplitMix64& random) {
  if (type == ScalarType::kPred) return random.Next() & 1;
  int bits = InfoOf(type).bits;
  Bits mask = bits == 64 ? ~Bits{0} : (Bits{1} << bits) - 1;
  if (!IsFloat(type)) {
    Bits special[] = {0, 1, 2, mask, mask - 1, mask >> 1, (mask >> 1) + 1, 7};
    return random.Next() % 3 == 0 ? special[random.Next() % 8]
                                  : random.Next() >> (random.Next() % 64) & mask;
  }
  double special[] = {0.0,      -0.0,      1,   -1,    0.5,    -2.5, 1e-40,
                      INFINITY, -INFINITY, NAN, 65520, 3.4e38, 1e-8, 127.5};
  uint64_t kind = random.Next() % 4;
  if (kind == 0) return BitsOfDouble(type, special[random.Next() % std::size(special)]);
  if (kind == 1)
    return BitsOfDouble(type,
                        static_cast<double>(static_cast<int64_t>(random.Next() % 4001) - 2000) / 8);
  return random.Next() & mask;
}

bool IsNan(ScalarType type, Bits bits) {
  return IsFloat(type) && std::isnan(DoubleOfBits(type, bits));
}

void Put(std::vector<uint8_t>& array, ScalarType type, int64_t i, Bits bits) {
  std::memcpy(array.data() + i * BytesOf(type), &bits, static_cast<size_t>(BytesOf(type)));
}

Bits At(const std::vector<uint8_t>& array, ScalarType type, int64_t i) {
  Bits bits = 0;
  std::memcpy(&bits, array.data() + i * BytesOf(type), static_cast<size_t>(BytesOf(type)));
  return bits;
}

void Check(const Case& c, KernelFn function, SplitMix64& random) {
  auto arity = static_cast<size_t>(InfoOf(c.prim).arity);
  std::vector<std::vector<uint8_t>> arrays(arity + 1, std::vector<uint8_t>(kCount * 8));
  std::vector<std::optional<Bits>> expected;
  for (int64_t i = 0; i < kCount; ++i) {
    Bits v[3] = {};
    for (size_t k = 0; k < arity; ++k)
      v[k] = Drawn(c.prim == Prim::kSelect && k == 0 ? ScalarType::kPred : c.from, random);
    if (c.prim == Prim::kShl || c.prim == Prim::kShr)
      v[1] %= static_cast<Bits>(InfoOf(c.from).bits) + 2;
    ScalarType from = c.prim == Prim::kSelect ? c.type : c.from;
    std::optional<Bits> want = EvaluatePrim(c.prim, c.type, from, v);
    if (!want && (c.prim == Prim::kDiv || c.prim == Prim::kRem)) {
      v[1] = 3;
      want = EvaluatePrim(c.prim, c.type, from, v);
    }
    expected.push_back(want);
    for (size_t k = 0; k < arity; ++k)
      Put(arrays[k], c.prim == Prim::kSelect && k == 0 ? ScalarType::kPred : c.from, i, v[k]);
  }
  std::vector<void*> pointers;
  for (auto& array : arrays) pointers.push_back(array.data());
  function(pointers.data(), nullptr, 0, kCount / c.lanes);
  for (int64_t i = 0; i < kCount; ++i) {
    if (!expected[static_cast<size_t>(i)]) continue;
    Bits want = *expected[static_cast<size_t>(i)], got = At(arrays[arity], c.type, i);
    if (IsNan(c.type, want) && IsNan(c.type, got)) continue;
    std::string operands;
    for (size_t k = 0; k < arity; ++k) operands += " " + std::to_string(At(arrays[k], c.from, i));
    ASSERT_EQ(want, got) << NameOf(c) << ", operands" << operands;
  }
}

void CheckAll(const Target& target, std::initializer_list<int64_t> all_lanes) {
  std::vector<Case> cases = AllCases(all_lanes);
  std::vector<Kernel> kernels;
  std::vector<const Kernel*> pointers;
  for (const Case& c : cases) kernels.push_back(KernelOf(c));
  for (const Kernel& kernel : kernels) pointers.push_back(&kernel);
  Result<std::string> object = MakeObject(pointers, target);
  ASSERT_TRUE(object.ok()) << object.error().message;
  auto code = LoadObject(object.value(), kernels.size());
  ASSERT_TRUE(code.ok()) << code.error().message;
  SplitMix64 random(7);
  for (size_t i = 0; i < cases.size() && !::testing::Test::HasFatalFailure(); ++i)
    Check(cases[i], code.value()->function(i), random);
}

TEST(Prims, AreWhatEvaluatePrimSays) {
  auto target = HostTarget();
  ASSERT_TRUE(target.ok()) << target.error().message;
  CheckAll(target.value(), {1, 16});
}

// Without the wider registers and without f16 instructions.
TEST(Prims, AreTheSameOnAnOlderProcessor) {
  auto host = HostTarget();
  ASSERT_TRUE(host.ok()) << host.error().message;
  Target target = host.value();
  if (!target.triple.starts_with("x86_64")) GTEST_SKIP() << "all aarch64 have what is needed";
  target.cpu = "haswell";
  target.features = {"+avx2", "+fma", "-f16c"};
  target.has_f16 = false;
  CheckAll(target, {4});
}

}  // namespace
}  // namespace tokamak::cpu
