#include <array>

#include "rewrite/expand/formulas.h"

namespace tokamak {
namespace {

// Chebyshev series of e^-x I1(x) / x on [0, 8] and of e^-x sqrt(x) I1(x) beyond (Cephes). Single
// precision uses only the last terms.
constexpr std::array kNear = {
    2.7779141127610464e-18,  -2.111421214358166e-17,  1.5536319577362005e-16,
    -1.1055969477353862e-15, 7.6006842947354077e-15,  -5.0421855047279118e-14,
    3.2237933659455748e-13,  -1.9839743977649436e-12, 1.1736186298890901e-11,
    -6.6634897235020271e-11, 3.6255902815521172e-10,  -1.8872497517228294e-09,
    9.3815373864957726e-09,  -4.4450591287963281e-08, 2.0032947535521353e-07,
    -8.5687202646954547e-07, 3.4702513081376785e-06,  -1.3273163656039436e-05,
    4.7815651075500542e-05,  -0.00016176081582589674, 0.00051228595616857576,
    -0.0015135724506312532,  0.0041564229443128882,   -0.010564084894626197,
    0.024726449030626516,    -0.052945981208094989,   0.10264365868984709,
    -0.17641651835783406,    0.25258718644363365};
constexpr std::array kFar = {
    7.5172963108421052e-18,  4.4143483230717077e-18,  -4.6503053684893586e-17,
    -3.2095259219934238e-17, 2.96262899764595e-16,    3.3082023109209285e-16,
    -1.8803547755107825e-15, -3.8144030724370075e-15, 1.0420276984128802e-14,
    4.272440016711951e-14,   -2.1015418427726643e-14, -4.0835511110921974e-13,
    -7.1985517762459084e-13, 2.0356285441470896e-12,  1.4125807436613782e-11,
    3.2526035830154884e-11,  -1.8974958123505413e-11, -5.5897434621965838e-10,
    -3.835380385964237e-09,  -2.6314688468895196e-08, -2.5122362378702088e-07,
    -3.8825648088776906e-06, -0.00011058893876262371, -0.0097610974913614687,
    0.77857623501828011};
constexpr size_t kNearInSingle = 17, kFarInSingle = 7;

// Clenshaw summation; x is twice the argument.
Term Chebyshev(Term x, std::span<const double> coefficients) {
  Term last = x.Number(0), before = last, sum = last;
  for (double coefficient : coefficients) {
    before = last;
    last = sum;
    sum = (x * last - before) + coefficient;
  }
  return (sum - before) * 0.5;
}

}  // namespace

Term ExpandBesselI1e(Term x) {
  bool single = x.type() == ElementType::kF32;
  std::span<const double> near = kNear, far = kFar;
  if (single) {
    near = near.last(kNearInSingle);
    far = far.last(kFarInSingle);
  }
  Term size = Abs(x);
  Term value = Select(size <= 8, size * Chebyshev(size * 0.5 - 2, near),
                      Chebyshev(32 / size - 2, far) / Sqrt(size));
  return Sign(x) * value;
}

}  // namespace tokamak
