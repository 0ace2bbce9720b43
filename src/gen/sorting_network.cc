#include "gen/sorting_network.h"

#include "kernel/gpu_limits.h"

namespace tokamak {
namespace {

// Maximum registers of a line over all operands. Chosen: with temporaries, few enough not to spill.
constexpr int64_t kMaxNetworkRegisters = 48;
// Maximum elements of lines without an integer key. Chosen: the comparator is unrolled for each of
// the 28 exchanges, and compile time grows with the square of the length.
constexpr int64_t kMaxComparedLength = 8;

// The single key of a sort that an integer can represent in the same order.
std::optional<ComparedKey> KeyOfSort(const LineSort& sort) {
  std::optional<std::vector<ComparedKey>> keys = ComparedKeysOf(*sort.instr->called(0));
  if (!keys || keys->size() != 1 || (*keys)[0].value->op() != Op::kParameter) return std::nullopt;
  return (*keys)[0];
}

ScalarType IntegerLike(ScalarType real) {
  return real == ScalarType::kF64 ? ScalarType::kS64 : ScalarType::kS32;
}
// The type of the floats whose bits are in such an integer.
ElementType ComputedFloat(ScalarType integer) {
  return integer == ScalarType::kS64 ? ElementType::kF64 : ElementType::kF32;
}
KeyWord KeyWordOf(ScalarType integer) {
  return {static_cast<int>(8 * BytesOf(integer)), /*is_signed=*/true};
}

// Integers of a kernel: a Code of support/ordered_key.h.
struct ScalarCode {
  KernelBuilder& b;
  ScalarType type;
  Scalar Constant(uint64_t value) const { return b.ConstantBits(type, value); }
  Scalar Xor(Scalar x, Scalar y) const { return x ^ y; }
  Scalar And(Scalar x, Scalar y) const { return x & y; }
  Scalar Equal(Scalar x, Scalar y) const { return x == y; }
  Scalar Less(Scalar x, Scalar y) const { return x < y; }
  Scalar IsNegative(Scalar x, const KeyWord&) const { return x < x.Like(0); }
  Scalar Select(Scalar condition, Scalar x, Scalar y) const { return Choose(condition, x, y); }
};

}  // namespace

bool IsNetworkSort(const Instr& sort) {
  if (sort.op() != Op::kSort || WhyNoComparatorCode(sort)) return false;
  LineSort lines = LineSortOf(sort);
  if (lines.length < 2 || lines.length > kMaxNetworkLength ||
      SortingNetwork::RegistersFor(lines) > kMaxNetworkRegisters)
    return false;
  std::optional<std::vector<ComparedKey>> keys = ComparedKeysOf(*sort.called(0));
  if (!keys) return false;
  for (const ComparedKey& key : *keys)
    if (key.order == SortOrder::kFloatIeee) return false;
  return KeyOfSort(lines) || lines.length <= kMaxComparedLength;
}

int64_t SortingNetwork::RegistersFor(const LineSort& sort) {
  int64_t bytes = 0;
  for (const Instr* operand : sort.instr->operands()) {
    ElementType type = operand->shape().type();
    bytes += BytesOf(ComputeType(type)) * (IsComplex(type) ? 2 : 1);
  }
  return sort.length * (bytes + kRegisterBytes - 1) / kRegisterBytes;
}

SortingNetwork::SortingNetwork(KernelBuilder& b, ElementEmitter& emitter, const LineSort& sort,
                               std::optional<Vectors> vectors)
    : b_(b), emitter_(emitter), sort_(sort), vectors_(vectors) {
  std::optional<ComparedKey> key = KeyOfSort(sort);
  has_key_ = key.has_value();
  if (key) {
    key_ = *key;
    key_operand_ = static_cast<size_t>(key_.value->attrs<ParameterAttrs>().number / 2);
    only_keys_ = sort.instr->operand_count() == 1 && key_.order != SortOrder::kFloatNanLast;
  }
  if (!vectors) return;
  for (const Instr* operand : sort.instr->operands()) {
    arrays_.push_back(LocalElements(b_, "line", operand->shape().type(), Space::kRegisters,
                                    vectors->lines * sort.length));
  }
}

void SortingNetwork::Sort(Scalar line) {
  if (!vectors_) return SortOne(line, 0);
  LoadVectors(line);
  for (int64_t line_in_group = 0; line_in_group < vectors_->lines; ++line_in_group)
    if (emitter_.failure().empty()) SortOne(line, line_in_group);
  if (emitter_.failure().empty()) StoreVectors(line);
}

void SortingNetwork::SortOne(Scalar line, int64_t line_in_group) {
  items_.assign(static_cast<size_t>(sort_.length), {});
  Load(line, line_in_group);
  if (!emitter_.failure().empty()) return;
  if (only_keys_) {
    EmitBatcherMergeSort();
  } else {
    EmitOddEvenTransposition();
  }
  if (emitter_.failure().empty()) Store(line, line_in_group);
}

// Calls body(element of the current lines, its coordinates) for all elements.
template <typename Body>
void SortingNetwork::ForLineVectors(Scalar line, Body&& body) {
  auto run = [&](Scalar element) {
    body(element, Delinearized(b_, line * b_.Index(sort_.length) + element, sort_.dims));
  };
  for (int64_t first = 0; first < vectors_->lines * sort_.length; first += vectors_->vector_width) {
    if (vectors_->vector_width == 1) {
      run(b_.Index(first));
      continue;
    }
    b_.For("l", LoopRole::kVector, b_.Index(vectors_->vector_width),
           [&](Scalar lane) { run(b_.Index(first) + lane); });
  }
}

void SortingNetwork::LoadVectors(Scalar line) {
  ForLineVectors(line, [&](Scalar element, const Coordinates& at) {
    for (size_t k = 0; k < arrays_.size(); ++k) {
      Element value = emitter_.At(*sort_.instr->operand(k), at);
      if (!emitter_.failure().empty()) return;
      StoreElement(b_, arrays_[k], element, value);
    }
  });
}

void SortingNetwork::StoreVectors(Scalar line) {
  ForLineVectors(line, [&](Scalar element, const Coordinates& at) {
    for (size_t k = 0; k < arrays_.size(); ++k) {
      ElementType type = sort_.instr->operand(k)->shape().type();
      emitter_.Store(*sort_.instr, k, at, ReadElement(b_, arrays_[k], type, element));
    }
  });
}

void SortingNetwork::Load(Scalar line, int64_t line_in_group) {
  int64_t first = line_in_group * sort_.length;
  for (size_t i = 0; i < items_.size(); ++i) {
    for (size_t k = 0; k < sort_.instr->operand_count(); ++k) {
      const Instr& operand = *sort_.instr->operand(k);
      auto position = static_cast<int64_t>(i);
      Element value =
          vectors_ ? ReadElement(b_, arrays_[k], operand.shape().type(), b_.Index(first + position))
                   : emitter_.At(operand, At(line, b_.Index(position)));
      if (!emitter_.failure().empty()) return;
      if (has_key_ && k == key_operand_) items_[i].key = KeyOf(value[0]);
      if (!only_keys_) items_[i].values.push_back(value);
    }
  }
}

void SortingNetwork::Store(Scalar line, int64_t line_in_group) {
  int64_t first = line_in_group * sort_.length;
  for (size_t k = 0; k < sort_.instr->operand_count(); ++k)
    for (size_t i = 0; i < items_.size(); ++i) {
      auto position = static_cast<int64_t>(i);
      Element value = only_keys_ ? ValueOf(items_[i].key) : items_[i].values[k];
      if (vectors_)
        StoreElement(b_, arrays_[k], b_.Index(first + position), value);
      else
        emitter_.Store(*sort_.instr, k, At(line, b_.Index(position)), value);
    }
}

void SortingNetwork::EmitOddEvenTransposition() {
  for (size_t pass = 0; pass < items_.size(); ++pass)
    for (size_t i = pass % 2; i + 1 < items_.size(); i += 2) Exchange(i, i + 1);
}

// Odd-even merge sort: Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M.
void SortingNetwork::EmitBatcherMergeSort() {
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

void SortingNetwork::Exchange(size_t i, size_t j) {
  Item &x = items_[i], &y = items_[j];
  Item first, second;
  Scalar is_swapped = only_keys_ ? Scalar() : IsBefore(y, x);
  if (has_key_) {
    first.key = LesserOf(x.key, y.key);
    second.key = GreaterOf(x.key, y.key);
  }
  for (size_t k = 0; k < x.values.size(); ++k) {
    Element &low = first.values.emplace_back(), &high = second.values.emplace_back();
    for (size_t component = 0; component < 2; ++component) {
      if (!x.values[k][component].ok()) continue;
      low[component] = Choose(is_swapped, y.values[k][component], x.values[k][component]);
      high[component] = Choose(is_swapped, x.values[k][component], y.values[k][component]);
    }
  }
  x = first;
  y = second;
}

Scalar SortingNetwork::IsBefore(const Item& x, const Item& y) {
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

Scalar SortingNetwork::KeyOf(Scalar value) {
  if (value.type() == ScalarType::kPred) value = value.As(ScalarType::kS32);
  if (IsFloatOrder(key_.order)) {
    value = value.BitsAs(IntegerLike(value.type()));
    ScalarCode code{b_, value.type()};
    KeyWord word = KeyWordOf(value.type());
    if (key_.order == SortOrder::kFloatNanLast) {
      value = WithEqualZeros(code, value, word);
      value = WithEqualNans(code, value, word, InfinityBits(ComputedFloat(value.type())));
    }
    value = ToOrderedKey(code, value, word, key_.order);
  }
  return key_.is_descending ? ReverseOrder(value) : value;
}

// Reverses the order of keys by inverting all bits.
Scalar SortingNetwork::ReverseOrder(Scalar key) {
  return key ^ b_.ConstantBits(key.type(), KeyWordOf(key.type()).ones());
}

Element SortingNetwork::ValueOf(Scalar key) {
  if (key_.is_descending) key = ReverseOrder(key);
  ElementType type = sort_.instr->operand(0)->shape().type();
  if (type == ElementType::kPred) return {key != 0.0, {}};
  if (key_.order == SortOrder::kFloatTotal) {
    ScalarCode code{b_, key.type()};
    key = FromOrderedKey(code, key, KeyWordOf(key.type()), key_.order).BitsAs(ComputeType(type));
  }
  return {key, {}};
}

}  // namespace tokamak
