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
      {"conj.real", "the conjugate of a real number is the number", m::Conj(x), x, IsOfNoComplex},
      {"conj.conj", "the conjugate of the conjugate", m::Conj(m::Conj(x)), x},
      {"real.conj", "the real part of a conjugate", m::Real(m::Conj(x)), m::Real(x)},
      {"imag.conj", "the imaginary part of a conjugate", m::Imag(m::Conj(x)), m::Negate(m::Imag(x)),
       IsOfComplex,
       R"(x = c64[61] parameter(0)
          c = c64[61] conj(x)
          ROOT i = f32[61] imag(c))"},
      {"conj.complex", "conj(complex(x, y)) is complex(x, -y)", m::Conj(m::Complex(x, y)),
       m::Complex(x, m::Negate(y))},
      {"abs.conj", "|conj(x)| is |x|", m::Abs(m::Conj(x)), m::Abs(x)},
      {"real.convert", "the real part of a real number converted to complex",
       m::Real(m::Convert(x)), x,
       [](const m::Match& match) { return match[x]->shape().type() == match.type(); },
       R"(x = f32[61] parameter(0)
          c = c64[61] convert(x)
          ROOT r = f32[61] real(c))"},
      {"imag.convert", "the imaginary part of a real number converted to complex",
       m::Imag(m::Convert(x)), m::PositiveZero(), IsOfNoComplex,
       R"(x = s32[61] parameter(0)
          c = c64[61] convert(x)
          ROOT r = f32[61] imag(c))"},
      {"real.negate", "the real part of -complex(x, y)", m::Real(m::Negate(m::Complex(x, y))),
       m::Negate(x)},
      {"imag.negate", "the imaginary part of -complex(x, y)", m::Imag(m::Negate(m::Complex(x, y))),
       m::Negate(y)},
      {"complex.convert", "complex(x, 0) is a conversion of x", m::Complex(x, m::PositiveZero()),
       [](Editor& edit, const m::Match& match) {
         return edit.MakeShaped(Op::kConvert, match.shape().WithoutLayout(), {match[x]});
       }},
  };
  return kRules;
}

}  // namespace tokamak
