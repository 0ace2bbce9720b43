#include "analysis/threefry.h"

namespace tokamak {
namespace {

// One round is  v0 += v1; v1 = rotl(v1, distance) ^ v0.  Each round thus ends in the xor of a
// rotation and a sum, which is what the search looks for. After every fourth round comes key
// injection b: v0 += key[b % 3]; v1 += key[(b + 1) % 3] + b.
//
// The last round is not matched: it follows from the state after round 19 (Finish), and the first
// output word does not need all of it, so a program may lack it.
constexpr int kRounds = 19;
// Rotation distances and key parity of threefry2x32 ("Parallel Random Numbers: As Easy as 1, 2, 3",
// SC 2011).
constexpr std::array<uint64_t, 8> kDistances = {13, 15, 26, 6, 17, 29, 16, 24};
constexpr uint64_t kParity = 0x1BD11BDA;  // key schedule: key[2] = key[0] ^ key[1] ^ kParity
// Partial matches that may start or continue at one term. Chosen: bounds the work per term.
constexpr int kMaxStatesAtOne = 8;
constexpr size_t kMaxDrawParts = 4;  // parts of the xor that ends a round; usually two

}  // namespace

void ThreefryFinder::Update() {
  for (; seen_ < terms_.xors().size(); ++seen_) {
    WordTerm found = terms_.xors()[seen_];
    const std::vector<std::pair<WordTerm, uint32_t>> parts = terms_.node(found).parts;
    if (parts.size() > kMaxDrawParts) continue;
    for (auto [part, times] : parts)
      if (terms_.node(part).kind == TermKind::kRotate) Look(found, part);
  }
}

void ThreefryFinder::Look(WordTerm found, WordTerm rotation) {
  const uint64_t distance = terms_.node(rotation).number;
  const WordTerm rotated = terms_.node(rotation).parts[0].first;
  const WordTerm v0 = terms_.Without(found, rotation);
  if (v0 == kNoTerm) return;
  if (distance == kDistances[0]) Begin(found, rotated, v0);
  std::vector<std::pair<int, WordTerm>> open;
  auto collect = [&](WordTerm summand) {
    auto [begin, end] = by_v1_.equal_range(summand);
    int count = 0;
    for (auto it = begin; it != end && count < kMaxStatesAtOne; ++it, ++count)
      open.push_back({it->second, summand});
  };
  collect(rotated);
  if (terms_.node(rotated).kind == TermKind::kSum)
    for (auto [summand, times] : terms_.node(rotated).parts)
      if (times == 1) collect(summand);
  for (auto [state, summand] : open) Continue(state, summand, found, rotated, distance, v0);
}

void ThreefryFinder::Begin(WordTerm v1, WordTerm rotated, WordTerm v0) {
  WordTerm start0 = terms_.Subtract(v0, rotated);
  if (start0 == kNoTerm) return;
  Put({v0, v1, start0, rotated, {kNoTerm, kNoTerm, kNoTerm}, 1, false});
}

void ThreefryFinder::Continue(int number, WordTerm summand, WordTerm v1, WordTerm rotated,
                              uint64_t distance, WordTerm v0) {
  State state = states_[static_cast<size_t>(number)];
  if (distance != kDistances[static_cast<size_t>(state.rounds) % 8]) return;
  if (state.rounds % 4 == 0) {
    if (!Inject(state, summand, rotated, v0)) return;
  } else if (summand != rotated || terms_.Add(state.v0, rotated) != v0) {
    return;
  }
  states_[static_cast<size_t>(number)].used = true;
  state.v0 = v0;
  state.v1 = v1;
  state.rounds += 1;
  state.used = false;
  Put(state);
}

// The values that were added to both words since the last round must be the keys.
bool ThreefryFinder::Inject(State& state, WordTerm summand, WordTerm rotated, WordTerm v0) {
  auto time = static_cast<size_t>(state.rounds) / 4;
  WordTerm first = terms_.Subtract(terms_.Subtract(v0, rotated), state.v0);
  WordTerm second = terms_.Subtract(terms_.Subtract(rotated, summand), terms_.Number(time));
  return Learn(state, time % 3, first) && Learn(state, (time + 1) % 3, second);
}

bool ThreefryFinder::Learn(State& state, size_t key, WordTerm value) {
  if (value == kNoTerm) return false;
  if (state.keys[key] != kNoTerm) return state.keys[key] == value;
  state.keys[key] = value;
  for (WordTerm known : state.keys)
    if (known == kNoTerm) return true;
  WordTerm third = terms_.Xor(terms_.Xor(state.keys[0], state.keys[1]), terms_.Number(kParity));
  return third == state.keys[2];
}

void ThreefryFinder::Put(State state) {
  if (by_v1_.count(state.v1) >= kMaxStatesAtOne) return;
  if (state.rounds == kRounds) {
    Finish(state);
    state.used = true;
  }
  by_v1_.emplace(state.v1, static_cast<int>(states_.size()));
  states_.push_back(state);
}

void ThreefryFinder::Finish(const State& state) {
  WordTerm v0 = terms_.Add(state.v0, state.v1);
  WordTerm rotated = terms_.Or(terms_.ShiftLeft(state.v1, kDistances[kRounds % 8]),
                               terms_.ShiftRight(state.v1, 32 - kDistances[kRounds % 8]));
  WordTerm v1 = terms_.Xor(v0, rotated);
  Found found{
      state.keys[0],
      state.keys[1],
      terms_.Subtract(state.start0, state.keys[0]),
      terms_.Subtract(state.start1, state.keys[1]),
      {terms_.Add(v0, state.keys[2]), terms_.Add(terms_.Add(v1, state.keys[0]), terms_.Number(5))}};
  for (WordTerm term : {found.x0, found.x1, found.words[0], found.words[1]})
    if (term == kNoTerm) return;
  int first = static_cast<int>(found_.size()) * 2;
  words_.emplace(found.words[0], first);
  words_.emplace(found.words[1], first + 1);
  found_.push_back(found);
}

int ThreefryFinder::WordOf(WordTerm term) const {
  auto it = words_.find(term);
  return it == words_.end() ? -1 : it->second;
}

ThreefryFinder::Partial ThreefryFinder::longest_partial() const {
  Partial longest;
  for (const State& state : states_)
    if (!state.used && state.rounds > longest.rounds && state.rounds < kRounds)
      longest = {state.rounds, state.v1};
  return longest;
}

}  // namespace tokamak
