// The error function's complement (Cephes) and inverse (M. Giles,
// "Approximating the erfinv function", 2010), in single and double precision.

#include <array>

#include "rewrite/expand/formulas.h"

namespace tokamak {
namespace {

// ---- erfc: 1 - erf(x) near 0, e^(-x^2) times a rational function beyond

Term SingleNear(Term x) {
  constexpr std::array kErf = {7.85386146e-05, -0.000801019371, 0.00518832775, -0.0268538129,
                               0.112835854,    -0.37612626,     1.12837911};
  return 1 - x * Polynomial(x * x, kErf);
}

Term SingleFar(Term x) {
  constexpr std::array kNear = {0.0232682,    -0.138703942, 0.368742466,  -0.582473278, 0.621000469,
                                -0.494451523, 0.340488,     -0.274112701, 0.563825965};
  constexpr std::array kFar = {-10.477664,  12.9772,    -7.49551868,  2.92101908,
                               -1.01526523, 0.42184633, -0.282076746, 0.564189494};
  constexpr double kUnderflow = -88.7228394;
  Term square = x * x, size = Abs(x);
  Term factor = Select(size < 2, Polynomial(1 / square, kNear), Polynomial(1 / square, kFar));
  return Select(-square < kUnderflow, 0, Exp(-square) * (1 / size) * factor);
}

Term DoubleNear(Term x) {
  constexpr std::array kAbove = {9.6049737398705162, 90.026019720384269, 2232.0053459468431,
                                 7003.3251411280507, 55592.301301039493};
  constexpr std::array kBelow = {1.0,
                                 33.561714164750313,
                                 521.35794978015269,
                                 4594.3238297098014,
                                 22629.000061389095,
                                 49267.394260863592};
  return 1 - x * Polynomial(x * x, kAbove) / Polynomial(x * x, kBelow);
}

Term DoubleFar(Term x) {
  constexpr std::array kNearAbove = {
      2.4619698147353052e-10, 0.56418956483106886, 7.4632105644226989,
      48.637197098568137,     196.5208329560771,   526.44519499547732,
      934.52852717195765,     1027.5518868951572,  557.53533536939938};
  constexpr std::array kNearBelow = {1.0,
                                     13.228195115474499,
                                     86.707214088598974,
                                     354.93777888781989,
                                     975.70850174320549,
                                     1823.9091668790973,
                                     2246.3376081871097,
                                     1656.6630919416134,
                                     557.53534081772773};
  constexpr std::array kFarAbove = {0.56418958354775506, 1.275366707599781,  5.0190504225118051,
                                    6.160210979930536,   7.4097426995044895, 2.9788666537210022};
  constexpr std::array kFarBelow = {1.0,
                                    2.2605286322011726,
                                    9.3960352493800148,
                                    12.048953980809666,
                                    17.081445074756591,
                                    9.6089680906328585,
                                    3.3690764510008151};
  constexpr double kUnderflow = -709.782712893384;
  Term minus_square = -(x * x), size = Abs(x), power = Exp(minus_square);
  auto ratio = [&](std::span<const double> above, std::span<const double> below) {
    return power * Polynomial(size, above) / Polynomial(size, below);
  };
  return Select(minus_square < kUnderflow, 0,
                Select(size < 8, ratio(kNearAbove, kNearBelow), ratio(kFarAbove, kFarBelow)));
}

// ---- erf_inv: polynomials in w = -log(1 - x^2), shifted, or in sqrt(w)

Term SingleInverse(Term w) {
  constexpr std::array kNear = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                -0.00417768164,  0.246640727,    1.50140941};
  constexpr std::array kFar = {-0.000200214257, 0.000100950558, 0.00134934322,
                               -0.00367342844,  0.00573950773,  -0.0076224613,
                               0.00943887047,   1.00167406,     2.83297682};
  Term near = w < 5;
  Term t = Select(near, w - 2.5, Sqrt(w) - 3);
  auto coefficient = [&](size_t i) { return Select(near, w.Number(kNear[i]), w.Number(kFar[i])); };
  Term sum = coefficient(0);
  for (size_t i = 1; i < kNear.size(); ++i) sum = coefficient(i) + sum * t;
  return sum;
}

// Three ranges of w, with polynomials of three degrees.
Term DoubleInverse(Term w) {
  constexpr std::array kNear = {
      -3.64441206401782e-21,  -1.6850591381820166e-19, 1.28584807152564e-18,
      1.1157877678025181e-17, -1.3331716628546209e-16, 2.0972767875968562e-17,
      6.6376381343583238e-15, -4.0545662729752069e-14, -8.1519341976054722e-14,
      2.6335093153082323e-12, -1.2975133253453532e-11, -5.4154120542946279e-11,
      1.0512122733215323e-09, -4.1126339803469837e-09, -2.9070369957882005e-08,
      4.2347877827932404e-07, -1.3654692000834679e-06, -1.3882523362786469e-05,
      0.00018673420803405714, -0.000740702534166267,   -0.0060336708714301491,
      0.24015818242558962,    1.6536545626831027};
  constexpr std::array kMiddle = {
      2.2137376921775787e-09, 9.0756561938885391e-08, -2.7517406297064545e-07,
      1.8239629214389228e-08, 1.5027403968909828e-06, -4.013867526981546e-06,
      2.9234449089955446e-06, 1.2475304481671779e-05, -4.7318229009055734e-05,
      6.8284851459573175e-05, 2.4031110387097894e-05, -0.00035503752036284748,
      0.0009532893797373805,  -0.0016882755560235047, 0.0024914420961078508,
      -0.0037512085075692412, 0.0053709145535900636,  1.0052589676941592,
      3.0838856104922208};
  constexpr std::array kFar = {
      -2.7109920616438573e-11, -2.5556418169965252e-10, 1.5076572693500548e-09,
      -3.789465440126737e-09,  7.61570120807834e-09,    -1.496002662714924e-08,
      2.9147953450901081e-08,  -6.7711997758452339e-08, 2.2900482228026655e-07,
      -9.9298272942317e-07,    4.5260625972231537e-06,  -1.9681778105531671e-05,
      7.5995277030017761e-05,  -0.00021503011930044477, -0.00013871931833623122,
      1.0103004648645344,      4.8499064014085844};
  Term near = w < 6.25, not_far = w < 16;
  Term t = Select(near, w - 3.125, Sqrt(w) - Select(not_far, w.Number(3.25), w.Number(5)));
  auto two = [&](size_t i) { return Select(near, w.Number(kNear[i]), w.Number(kMiddle[i])); };
  Term sum = Select(not_far, two(0), kFar[0]);
  size_t i = 1;
  for (; i < kFar.size(); ++i) sum = Select(not_far, two(i), kFar[i]) + sum * t;
  for (; i < kMiddle.size(); ++i) sum = Select(not_far, two(i) + sum * t, sum);
  for (; i < kNear.size(); ++i) sum = Select(near, kNear[i] + sum * t, sum);
  return sum;
}

}  // namespace

Term ExpandErfc(Term x) {
  bool wide = x.type() == ElementType::kF64;
  Term near = wide ? DoubleNear(x) : SingleNear(x);
  Term far = wide ? DoubleFar(x) : SingleFar(x);
  return Select(Abs(x) < 1, near, Select(x < 0, 2 - far, far));
}

Term ExpandErfInv(Term x) {
  Term w = -Log1p(x * -x);
  Term sum = x.type() == ElementType::kF64 ? DoubleInverse(w) : SingleInverse(w);
  return Select(Abs(x) == 1, x * x.Infinity(), sum * x);
}

}  // namespace tokamak
