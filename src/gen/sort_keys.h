#pragma once

#include <optional>
#include <vector>

#include "ir/ir.h"
#include "support/ordered_key.h"

// Recognizes comparators of sorts as lexicographic orders of keys. support/ordered_key.h maps keys
// to integers.

namespace tokamak {

// The order of a type's elements if floats are ordered totally; nullopt for complex types and types
// whose bits have no such order.
std::optional<SortOrder> TotalOrderOf(ElementType type);
// The bits of a float type's infinity, or of its greatest finite number if it has none: bits above
// it are NaNs, for runtime sorts that compare the bits of floats as integers.
uint64_t InfinityBits(ElementType type);

// One comparison in a comparator: the same expression, evaluated for both elements.
struct ComparedKey {
  const Instr* value = nullptr;  // computed from the parameters of the first element
  SortOrder order{};
  bool is_descending = false;
};

// The keys that a comparator (a, b) compares, most significant first; nullopt if it is not such an
// order.
std::optional<std::vector<ComparedKey>> ComparedKeysOf(const Computation& less);

// A ComparedKey whose value is the element of an operand itself.
struct OperandKey {
  size_t operand = 0;
  SortOrder order{};
  bool is_descending = false;
};

// The keys of a sort whose comparator compares elements of its operands lexicographically; nullopt
// for other sorts.
std::optional<std::vector<OperandKey>> KeysOf(const Instr& sort);

// Whether all operands of a sort are nonempty arrays and its comparator captures nothing: it has no
// trailing operands that the comparator takes whole (Instr::captures).
bool HasPlainOperands(const Instr& sort);
// Whether an array is an iota (0, 1, 2 ...) along a dimension.
bool IsIotaAlong(const Instr& instr, int64_t dimension);

// Whether elements of the type can be packed as bits of a power-of-two width, and that width.
bool CanPack(ElementType type);
int PackedBits(ElementType type);

// A sort by one key as a sort of words with the key in the upper bits and a payload in the lower
// bits: the only other operand, or the index of the element, by which the other operands are
// gathered. Nullopt if the sort has no such key, or if both do not fit into 64 bits.
struct PackedKey {
  enum class Payload : uint8_t { kNone, kOperand, kIndex };
  OperandKey key;
  Payload payload = Payload::kNone;
  int key_bits = 0, payload_bits = 0;
  ElementType word{};  // u32 or u64
};
std::optional<PackedKey> PackedKeyOf(const Instr& sort);

}  // namespace tokamak
