// Complex numbers: real and imag of complex(x, y). Complex products lack the identities of real
// ones: (inf, 0) * (1, 0) contains a NaN.

#include "rewrite/rules/conditions.h"
#include "rewrite/rules/topics.h"

namespace tokamak {
namespace {

using m::a;
using m::x;
using m::y;

bool IsOfComplex(const m::Match& match) {
  return IsComplex(match[x]->shape().type());
}
bool IsOfNoComplex(const m::Match& match) {
  return !IsOfComplex(match);
}

}  // namespace

std::span<const Rule> ComplexRules() {
  static constexpr Rule kRules[] = {
      {"real.complex", "the real part of complex(x, y)", m::Real(m::Complex(x, y)), x},
      {"imag.complex", "the imaginary part of complex(x, y)", m::Imag(m::Complex(x, y)), y},
      {"complex.parts", "complex(real(x), imag(x)) is x", m::Complex(m::Real(x), m::Imag(x)), x,
       IsOfComplex,
       R"(x = c64[61] parameter(0)
          r = f32[61] real(x)
          i = f32[61] imag(x)
          ROOT z = c64[61] complex(r, i))"},
      {"real.real", "the real part of a real number", m::Real(x), x, IsOfNoComplex},
      {"imag.real", "the imaginary part of a real number", m::Imag(x), m::PositiveZero(),
       IsOfNoComplex},
      {"complex.convert", "complex(x, 0) is a conversion of x", m::Complex(x, m::PositiveZero()),
       [](Editor& edit, const m::Match& match) {
         return edit.MakeShaped(Op::kConvert, match.shape().WithoutLayout(), {match[x]});
       }},
  };
  return kRules;
}

}  // namespace tokamak
