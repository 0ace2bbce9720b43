#include "gen/line_network.h"

#include <limits>

namespace tokamak {
namespace {

// Maximum elements of a line, and maximum registers of a line over all operands. Chosen: no spills.
constexpr int64_t kLongest = 16, kMaxNetworkRegisters = 48;
// Maximum elements of lines without an integer key: the comparator is unrolled for every exchange.
// Chosen.
constexpr int64_t kLongestCompared = 8;

// The single key of a sort that an integer can represent in the same order.
std::optional<ComparedKey> KeyOfSort(const LineSort& sort) {
  std::optional<std::vector<ComparedKey>> keys = ComparedKeysOf(*sort.instr->called(0));
  if (!keys || keys->size() != 1 || (*keys)[0].value->op() != Op::kParameter) return std::nullopt;
  return (*keys)[0];
}

ScalarType IntegerLike(ScalarType real) {
  return real == ScalarType::kF64 ? ScalarType::kS64 : ScalarType::kS32;
}

}  // namespace

bool IsNetworkSort(const Instr& sort) {
  if (sort.op() != Op::kSort || WhyNoComparison(sort)) return false;
  LineSort lines = LineSortOf(sort);
  if (lines.length < 2 || lines.length > kLongest ||
      LineNetwork::RegistersFor(lines) > kMaxNetworkRegisters)
    return false;
  std::optional<std::vector<ComparedKey>> keys = ComparedKeysOf(*sort.called(0));
  if (!keys) return false;
  for (const ComparedKey& key : *keys)
    if (key.order == KeyOrder::kPlain) return false;
  return KeyOfSort(lines) || lines.length <= kLongestCompared;
}

int64_t LineNetwork::RegistersFor(const LineSort& sort) {
  int64_t bytes = 0;
  for (const Instr* operand : sort.instr->operands()) {
    ElementType type = operand->shape().type();
    bytes += BytesOf(ComputeType(type)) * (IsComplex(type) ? 2 : 1);
  }
  return sort.length * (bytes + 3) / 4;
}

LineNetwork::LineNetwork(KernelBuilder& b, ElementEmitter& emitter, const LineSort& sort,
                         std::optional<Vectors> vectors)
    : b_(b), emitter_(emitter), sort_(sort), vectors_(vectors) {
  std::optional<ComparedKey> key = KeyOfSort(sort);
  has_key_ = key.has_value();
  if (key) {
    key_ = *key;
    key_operand_ = static_cast<size_t>(key_.value->attrs<ParameterAttrs>().number / 2);
    only_keys_ = sort.instr->operand_count() == 1 && key_.order != KeyOrder::kNumbers;
  }
  if (!vectors) return;
  for (const Instr* operand : sort.instr->operands()) {
    ElementType type = operand->shape().type();
    std::array<ArrayId, 2>& arrays = arrays_.emplace_back();
    for (size_t part = 0; part < (IsComplex(type) ? 2u : 1u); ++part)
      arrays[part] =
          b_.Local("line", ComputeType(type), Space::kRegisters, vectors->lines * sort.length);
  }
}

void LineNetwork::Sort(Scalar line) {
  if (!vectors_) return SortOne(line, 0);
  LoadVectors(line);
  for (int64_t number = 0; number < vectors_->lines; ++number)
    if (emitter_.failure().empty()) SortOne(line, number);
  if (emitter_.failure().empty()) StoreVectors(line);
}

void LineNetwork::SortOne(Scalar line, int64_t number) {
  items_.assign(static_cast<size_t>(sort_.length), {});
  Load(line, number);
  if (!emitter_.failure().empty()) return;
  if (only_keys_) {
    Batcher();
  } else {
    Neighbours();
  }
  if (emitter_.failure().empty()) Store(line, number);
}

// Calls body(element of the current lines, its coordinates) for all elements.
template <typename Body>
void LineNetwork::ForVectors(Scalar line, Body&& body) {
  auto run = [&](Scalar element) {
    body(element, Delinearized(b_, line * b_.Index(sort_.length) + element, sort_.dims));
  };
  for (int64_t first = 0; first < vectors_->lines * sort_.length; first += vectors_->at_once) {
    if (vectors_->at_once == 1) {
      run(b_.Index(first));
      continue;
    }
    b_.For("l", LoopRole::kVector, b_.Index(vectors_->at_once),
           [&](Scalar lane) { run(b_.Index(first) + lane); });
  }
}

void LineNetwork::LoadVectors(Scalar line) {
  ForVectors(line, [&](Scalar element, const Coordinates& at) {
    for (size_t k = 0; k < arrays_.size(); ++k) {
      Element value = emitter_.At(*sort_.instr->operand(k), at);
      if (!emitter_.failure().empty()) return;
      for (size_t part = 0; part < 2; ++part)
        if (value[part].ok()) b_.Store(arrays_[k][part], element, value[part]);
    }
  });
}

void LineNetwork::StoreVectors(Scalar line) {
  ForVectors(line, [&](Scalar element, const Coordinates& at) {
    for (size_t k = 0; k < arrays_.size(); ++k) {
      Element value;
      bool complex = IsComplex(sort_.instr->operand(k)->shape().type());
      for (size_t part = 0; part < (complex ? 2u : 1u); ++part)
        value[part] = b_.Read(arrays_[k][part], element);
      emitter_.Store(*sort_.instr, k, at, value);
    }
  });
}

void LineNetwork::Load(Scalar line, int64_t number) {
  int64_t first = number * sort_.length;
  for (size_t i = 0; i < items_.size(); ++i) {
    for (size_t k = 0; k < sort_.instr->operand_count(); ++k) {
      Element value;
      const Instr& operand = *sort_.instr->operand(k);
      auto position = static_cast<int64_t>(i);
      if (!vectors_) value = emitter_.At(operand, At(line, b_.Index(position)));
      for (size_t part = 0; vectors_ && part < (IsComplex(operand.shape().type()) ? 2u : 1u);
           ++part)
        value[part] = b_.Read(arrays_[k][part], b_.Index(first + position));
      if (!emitter_.failure().empty()) return;
      if (has_key_ && k == key_operand_) items_[i].key = KeyOf(value[0]);
      if (!only_keys_) items_[i].values.push_back(value);
    }
  }
}

void LineNetwork::Store(Scalar line, int64_t number) {
  int64_t first = number * sort_.length;
  for (size_t k = 0; k < sort_.instr->operand_count(); ++k)
    for (size_t i = 0; i < items_.size(); ++i) {
      auto position = static_cast<int64_t>(i);
      Element value = only_keys_ ? ValueOf(items_[i].key) : items_[i].values[k];
      if (!vectors_) emitter_.Store(*sort_.instr, k, At(line, b_.Index(position)), value);
      for (size_t part = 0; vectors_ && part < 2; ++part)
        if (value[part].ok()) b_.Store(arrays_[k][part], b_.Index(first + position), value[part]);
    }
}

void LineNetwork::Neighbours() {
  for (size_t pass = 0; pass < items_.size(); ++pass)
    for (size_t i = pass % 2; i + 1 < items_.size(); i += 2) Exchange(i, i + 1);
}

// Odd-even merge sort: Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M.
void LineNetwork::Batcher() {
  size_t n = items_.size(), top = 1;
  while (2 * top < n) top *= 2;
  for (size_t p = top; p > 0; p /= 2) {
    size_t q = top, r = 0, d = p;
    while (true) {
      for (size_t i = 0; i + d < n; ++i)
        if ((i & p) == r) Exchange(i, i + d);
      if (q == p) break;
      d = q - p;
      q /= 2;
      r = p;
    }
  }
}

void LineNetwork::Exchange(size_t i, size_t j) {
  Item &x = items_[i], &y = items_[j];
  Item first, second;
  Scalar is_swapped = only_keys_ ? Scalar() : IsBefore(y, x);
  if (has_key_) {
    first.key = LesserOf(x.key, y.key);
    second.key = GreaterOf(x.key, y.key);
  }
  for (size_t k = 0; k < x.values.size(); ++k) {
    Element &low = first.values.emplace_back(), &high = second.values.emplace_back();
    for (size_t part = 0; part < 2; ++part) {
      if (!x.values[k][part].ok()) continue;
      low[part] = Choose(is_swapped, y.values[k][part], x.values[k][part]);
      high[part] = Choose(is_swapped, x.values[k][part], y.values[k][part]);
    }
  }
  x = first;
  y = second;
}

Scalar LineNetwork::IsBefore(const Item& x, const Item& y) {
  if (has_key_) return x.key < y.key;
  std::vector<Element> both;
  for (size_t k = 0; k < x.values.size(); ++k) {
    both.push_back(x.values[k]);
    both.push_back(y.values[k]);
  }
  if (std::optional<Scalar> before = ComesBefore(b_, sort_, both)) return *before;
  emitter_.Fail("sort: its computation has no scalar formula");
  return b_.Constant(ScalarType::kPred, 0);
}

// Maps the bits of a float to a signed integer with the same order, and back: the magnitude bits of
// negative numbers are inverted.
Scalar LineNetwork::Ordered(Scalar bits) {
  bool wide = bits.type() == ScalarType::kS64;
  Bits most = wide ? static_cast<Bits>(std::numeric_limits<int64_t>::max())
                   : static_cast<Bits>(std::numeric_limits<int32_t>::max());
  Scalar sign = bits >> bits.Like(wide ? 63 : 31);
  return bits ^ (sign & b_.ConstantBits(bits.type(), most));
}

Scalar LineNetwork::KeyOf(Scalar value) {
  if (value.type() == ScalarType::kPred) value = value.As(ScalarType::kS32);
  if (key_.order == KeyOrder::kNumbers) {
    value = Choose(value == 0.0, value.Like(0), value);
    value = Choose(value != value, value.Like(std::numeric_limits<double>::quiet_NaN()), value);
  }
  if (key_.order == KeyOrder::kNumbers || key_.order == KeyOrder::kTotal)
    value = Ordered(value.BitsAs(IntegerLike(value.type())));
  return key_.is_descending ? Flipped(value) : value;
}

// Reverses the order of keys by inverting all bits.
Scalar LineNetwork::Flipped(Scalar key) {
  Bits ones = ~Bits{0} >> (64 - 8 * BytesOf(key.type()));
  return key ^ b_.ConstantBits(key.type(), ones);
}

Element LineNetwork::ValueOf(Scalar key) {
  if (key_.is_descending) key = Flipped(key);
  ElementType type = sort_.instr->operand(0)->shape().type();
  if (type == ElementType::kPred) return {key != 0.0, {}};
  if (key_.order == KeyOrder::kTotal) key = Ordered(key).BitsAs(ComputeType(type));
  return {key, {}};
}

}  // namespace tokamak
