#pragma once

#include "gen/sort_keys.h"
#include "ir/ir.h"
#include "rewrite/editor.h"

// Sort keys as unsigned integers. The bits of an element map to an unsigned integer with the same
// order. One word can then hold a key in its upper bits and a payload in its lower bits: comparing
// words compares keys first.

namespace tokamak {

// Whether elements of the type can be packed as bits of a power-of-two width, and that width.
bool CanPack(ElementType type);
int PackedBits(ElementType type);

// The bits of the elements in unsigned integers of type `word`, and back.
Instr* BitsAsWord(Editor& make, Instr* x, ElementType word);
Instr* FromBits(Editor& make, Instr* bits, ElementType type);

// Maps `key_bits` bits of a key type to unsigned integers with the same order, and back.
Instr* OrderedBits(Editor& make, Instr* bits, int key_bits, KeyOrder order);
Instr* FromOrderedBits(Editor& make, Instr* ordered, int key_bits, KeyOrder order);

}  // namespace tokamak
