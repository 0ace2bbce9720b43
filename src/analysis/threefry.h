#pragma once

#include <array>
#include <unordered_map>
#include <vector>

#include "analysis/word_terms.h"

namespace tokamak {

// Recognizes threefry2x32, the PRNG of JAX, in the word terms of a computation (word_terms.h).
// Checks every rotation, key and addition of its 20 rounds; how a program writes or has simplified
// them does not matter, since equal terms are one number. Incremental.
class ThreefryFinder {
 public:
  explicit ThreefryFinder(WordTerms& terms) : terms_(terms) {}

  struct Found {
    WordTerm k0, k1, x0, x1;  // key, counter
    std::array<WordTerm, 2> words;
  };
  // Processes the xor terms that were added since the last call. Linear in their number.
  void Update();
  const std::vector<Found>& all() const { return found_; }
  // Index of the generator in all() * 2 + output word; -1 if the term is not an output.
  int WordOf(WordTerm term) const;

  // The longest sequence of rounds that did not become a complete threefry, and its last term;
  // rounds = 0 if there is none. For diagnostics.
  struct Partial {
    int rounds = 0;
    WordTerm last = kNoTerm;
  };
  Partial longest_partial() const;

 private:
  // The state after some rounds, before the key injection that follows every fourth.
  struct State {
    WordTerm v0, v1;          // the two words
    WordTerm start0, start1;  // x0 + k0, x1 + k1
    std::array<WordTerm, 3> keys;
    int rounds;
    bool used;  // extended by another round
  };
  void Look(WordTerm found, WordTerm rotation);
  void Begin(WordTerm v1, WordTerm rotated, WordTerm v0);
  void Continue(int state, WordTerm summand, WordTerm v1, WordTerm rotated, uint64_t distance,
                WordTerm v0);
  bool Inject(State& state, WordTerm summand, WordTerm rotated, WordTerm v0);
  bool Learn(State& state, size_t key, WordTerm value);
  void Put(State state);
  void Finish(const State& state);

  WordTerms& terms_;
  size_t seen_ = 0;
  std::vector<State> states_;
  std::unordered_multimap<WordTerm, int> by_v1_;
  std::vector<Found> found_;
  std::unordered_map<WordTerm, int> words_;
};

}  // namespace tokamak
