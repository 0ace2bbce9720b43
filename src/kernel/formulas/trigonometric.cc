// sin, cos and tan of any argument: x = n pi/2 + r with |r| slightly above pi/4 at most, and a
// polynomial in r.

#include "kernel/formulas/functions.h"

namespace tokamak::formulas {
namespace {

constexpr double kQuarterTurn[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};

struct ReducedArgument {
  Scalar r, r_low;  // f64
  Scalar quarter;   // n in its low two bits; a u32 for f32 arguments, else a u64
};

// Argument reduction of an f32, in f64. From 2^43 on, x is replaced by a number that differs by
// full turns: with m the difference of 2^20a and the nearest multiple of 2 pi (and x 2^-20a still
// an integer), x 2^-20a m. Then n has at most 45 bits, and products with the two parts of pi/2 have
// an error of 2^-60. No f32 is closer to a multiple of pi/2 than 2^-30.
ReducedArgument ReducedArgumentF32(Scalar x) {
  static constexpr struct {
    double from, high, low;
  } kScales[] = {{0x1p43, 0x1.58e8ec12c0aa8p-22, 0x1.95c955afd3e7bp-76},
                 {0x1p63, -0x1.5ca6dfeaae1f6p-39, -0x1.60cab403f9f91p-96},
                 {0x1p83, -0x1.14a6222f5ceffp-59, 0x1.976ea91bba67bp-116},
                 {0x1p103, -0x1.082d219bb0225p-80, 0x1.29b05b18df9e2p-135},
                 {0x1p123, -0x1.0f45204cd2192p-100, -0x1.d6b3c80daf49ap-157}};
  Scalar size = AbsOf(x), wide = x.As(ScalarType::kF64);
  Scalar is_large = size >= kScales[0].from;
  Scalar high = wide.Like(kScales[0].high), low = wide.Like(kScales[0].low);
  for (const auto& scale : kScales) {
    high = Choose(size >= scale.from, wide.Like(scale.high), high);
    low = Choose(size >= scale.from, wide.Like(scale.low), low);
  }
  Scalar scaled = wide * high;
  Scalar y = Choose(is_large, scaled, wide);
  Scalar y_low = Choose(is_large, Fma(wide, low, Fma(wide, high, -scaled)), wide.Like(0));
  Scalar rounder = Fma(y, wide.Like(0x1.45f306dc9c883p-1), wide.Like(0x1.8p52));
  Scalar n = rounder - 0x1.8p52;
  Scalar r = Fma(n, wide.Like(-kQuarterTurn[0]), y);
  r = Fma(n, wide.Like(-kQuarterTurn[1]), r) + y_low;
  return {r, wide.Like(0), rounder.BitsAs(ScalarType::kU64).As(ScalarType::kU32)};
}

// 2/pi: 64 zeros, then its bits.
constexpr uint64_t kTwoOverPi[] = {0,
                                   0xA2F9836E4E441529,
                                   0xFC2757D1F534DDC0,
                                   0xDB6295993C439041,
                                   0xFE5163ABDEBBC561,
                                   0xB7246E3A424DD2E0,
                                   0x06492EEA09D1921C,
                                   0xFE1DEB1CB129A73E,
                                   0xE88235F52EBB4484,
                                   0xE99C7026B45F7E41,
                                   0x3991D639835339F4,
                                   0x9C845F8BBDF9283B,
                                   0x1FF897FFDE05980F,
                                   0xEF2F118B5A0A6D1F,
                                   0x6D367ECF27CB09B7,
                                   0x4F463F669E5FEA2D,
                                   0x7527BAC7EBE5F17B,
                                   0x3D0739F78A5292EA,
                                   0x6BFB5FB11F8D5D08,
                                   0x56033046FC7B6BAB};

// Argument reduction of an f64 (Payne and Hanek): for x 2/pi with x = m 2^e, multiplies only the
// bits of 2/pi that contribute neither full turns nor negligible amounts: 192 bits, from bit e - 1
// on.
ReducedArgument ReducedArgumentF64(Scalar x) {
  KernelBuilder& b = x.builder();
  auto number = [&](uint64_t bits) { return b.ConstantBits(ScalarType::kU64, bits); };
  auto high_part = [&](Scalar p, Scalar q) { return b.Make(Prim::kMulHigh, {p, q}); };
  Scalar size = AbsOf(x), is_small = size < 0.78;
  Scalar is_open = !(size < Infinity(x));
  Scalar bits = Choose(is_small | is_open, x.Like(1), size).BitsAs(ScalarType::kU64);
  Scalar m = (bits & number((uint64_t{1} << 52) - 1)) | number(uint64_t{1} << 52);
  Scalar bit_position = (bits >> number(52)) - number(1075 - 62);  // bit index in kTwoOverPi
  Scalar word = bit_position >> number(6), offset = bit_position & number(63);
  // The four words starting at `word`: a barrel shift by 16, 8, 4, 2, 1 words, controlled by the
  // bits of `word`.
  std::array<Scalar, 20> words;
  for (size_t i = 0; i < 20; ++i) words[i] = number(kTwoOverPi[i]);
  for (size_t step : {16, 8, 4, 2, 1}) {
    Scalar moves = (word & number(step)) != 0;
    size_t needed = 4 + (step == 16 ? 0 : step - 1);
    for (size_t i = 0; i < needed; ++i)
      if (i + step < 20) words[i] = Choose(moves, words[i + step], words[i]);
  }
  Scalar back = number(63) - offset;
  auto shifted = [&](size_t i) {
    return (words[i] << offset) | ((words[i + 1] >> number(1)) >> back);
  };
  Scalar f2 = shifted(0), f1 = shifted(1), f0 = shifted(2);
  // m f mod 2^192, whose last word is not needed: y mod 4 times 2^126.
  Scalar middle = m * f1, low = high_part(m, f0) + middle;
  Scalar carry = Choose(low < middle, number(1), number(0));
  Scalar high = high_part(m, f1) + m * f2 + carry;
  Scalar quarter = (high + number(uint64_t{1} << 61)) >> number(62);
  // The remainder in -1/2 to 1/2, times 2^64. Its first 53 bits are separate, so that they are
  // exact.
  Scalar rest = (high << number(2)) | (low >> number(62));
  Scalar first = (rest & number(~uint64_t{0x7ff})).BitsAs(ScalarType::kS64).As(ScalarType::kF64);
  Scalar second = (rest & number(0x7ff)).BitsAs(ScalarType::kS64).As(ScalarType::kF64);
  Scalar third = (low << number(2) >> number(1)).BitsAs(ScalarType::kS64).As(ScalarType::kF64);
  second = Fma(third, x.Like(0x1p-63), second);
  Double turns = Renormalized(first, second);
  turns = {turns.high * 0x1p-64, turns.low * 0x1p-64};
  Double r = Times(turns, Double{x.Like(kQuarterTurn[0]), x.Like(kQuarterTurn[1])});
  Scalar is_negative = x < 0;
  quarter = Choose(is_negative, number(0) - quarter, quarter);
  r = {Choose(is_negative, -r.high, r.high), Choose(is_negative, -r.low, r.low)};
  return {Choose(is_open, NotANumber(x), Choose(is_small, x, r.high)),
          Choose(is_small, x.Like(0), r.low), Choose(is_small, number(0), quarter)};
}

// sin and cos of an f64 of at most slightly more than pi/4, given as a double-double.
SinCos OfRest(Scalar r, Scalar r_low) {
  Scalar u = r * r;
  Scalar odd =
      Polynomial(u, {-0.16666666666666666, 0.0083333333333308873, -0.00019841269836665880,
                     2.7557316054593912e-6, -2.5051121875169608e-8, 1.5917412836707387e-10});
  Scalar even =
      Polynomial(u, {0.041666666666666664, -0.0013888888888887359, 2.4801587298707701e-5,
                     -2.7557317241727759e-7, 2.0876140031390975e-9, -1.1382184214477529e-11});
  Scalar sin = r + Fma(odd * u, r, Fma(r_low, u * -0.5, r_low));
  Scalar half = u * 0.5, one = 1 - half;
  Scalar lost = (1 - one) - half;  // rounding error of the difference
  Scalar cos = one + (lost + Fma(u * u, even, -(r * r_low)));
  return {sin, cos};
}

SinCos OfTurned(const ReducedArgument& turned) {
  SinCos of_rest = OfRest(turned.r, turned.r_low);
  Scalar n = turned.quarter;
  Scalar is_odd = (n & n.Like(1)) != 0;
  Scalar sin = Choose(is_odd, of_rest.cos, of_rest.sin);
  Scalar cos = Choose(is_odd, of_rest.sin, of_rest.cos);
  Scalar turns_sin = (n & n.Like(2)) != 0, turns_cos = ((n + n.Like(1)) & n.Like(2)) != 0;
  return {Choose(turns_sin, -sin, sin), Choose(turns_cos, -cos, cos)};
}

// For f32, shifted by `shift` quarter turns. Below 2^17 n has 17 bits, so the remainder of x after
// subtracting the first of three parts of pi/2 is exact: 1.6 ulp. Beyond, the reduction is done in
// f64.
Scalar SinOfF32(Scalar x, double shift) {
  Scalar is_large = AbsOf(x) >= 0x1p17;
  ReducedArgument far = ReducedArgumentF32(x);
  Scalar rounder = Fma(x, x.Like(0x1.45f306p-1), x.Like(0x1.8p23)), count = rounder - 0x1.8p23;
  Scalar r = x;
  for (double part : {-0x1.921fb6p+0, 0x1.777a5cp-25, 0x1.ee59dap-50})
    r = Fma(count, x.Like(part), r);
  r = Choose(is_large, far.r.As(ScalarType::kF32), r);
  Scalar n = Choose(is_large, far.quarter, rounder.BitsAs(ScalarType::kU32)) + shift, u = r * r;
  Scalar odd = Polynomial(u, {-0.166666642, 0.00833274238, -0.000195866058});
  Scalar even = Polynomial(u, {0.0416666642, -0.00138882967, 2.45466545e-5});
  Scalar sin = Fma(odd * u, r, r), cos = Fma(u * u, even, Fma(u, u.Like(-0.5), u.Like(1)));
  Scalar value = Choose((n & n.Like(1)) != 0, cos, sin);
  Scalar sign = (n & n.Like(2)) << n.Like(30);
  return (value.BitsAs(ScalarType::kU32) ^ sign).BitsAs(ScalarType::kF32);
}

}  // namespace

// pi x = n pi/2 + pi r
SinCos SinCosOfPi(Scalar x) {
  Scalar rest = x - RoundEvenOf(x * 0.5) * 2;  // from -1 to 1
  Scalar n = RoundEvenOf(rest * 2), r = Fma(n, x.Like(-0.5), rest);
  Double angle =
      Times(Double{r, x.Like(0)}, Double{x.Like(2 * kQuarterTurn[0]), x.Like(2 * kQuarterTurn[1])});
  auto [sin, cos] = OfRest(angle.high, angle.low);
  Scalar is_odd = AbsOf(n) == 1, is_half = AbsOf(n) == 2;
  Scalar turned_sin = CopySign(cos, n), turned_cos = Choose(n > 0, -sin, sin);
  return {Choose(is_odd, turned_sin, Choose(is_half, -sin, sin)),
          Choose(is_odd, turned_cos, Choose(is_half, -cos, cos))};
}

SinCos SinCosOf(Scalar x) {
  return OfTurned(ReducedArgumentF64(x));
}

Scalar Sin(Scalar x) {
  bool wide = x.type() == ScalarType::kF64;
  Scalar result = wide ? SinCosOf(x).sin : SinOfF32(x, 0);
  return Choose(AbsOf(x) < (wide ? 0x1p-27 : 0x1p-12), x, result);  // also keeps -0
}

Scalar Cos(Scalar x) {
  return x.type() == ScalarType::kF64 ? SinCosOf(x).cos : SinOfF32(x, 1);
}

Scalar Tan(Scalar x) {
  bool wide = x.type() == ScalarType::kF64;
  auto [sin, cos] = OfTurned(wide ? ReducedArgumentF64(x) : ReducedArgumentF32(x));
  Scalar result = (sin / cos).As(x.type());
  return Choose(AbsOf(x) < (wide ? 0x1p-27 : 0x1p-12), x, result);
}

}  // namespace tokamak::formulas
