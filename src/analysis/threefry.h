#pragma once

#include <array>
#include <unordered_map>
#include <vector>

#include "analysis/word_terms.h"

namespace tokamak {

// Finds threefry2x32 among the terms of a computation: every round, rotation and key of the twenty
// is checked, whoever wrote them and however they were folded. It is told of terms as they come up.
class ThreefryFinder {
 public:
  explicit ThreefryFinder(WordTerms& terms) : terms_(terms) {}

  struct Found {
    WordTerm k0, k1, x0, x1;  // key and counter
    std::array<WordTerm, 2> words;
  };
  // Looks at the exclusive ors that came up since the last time. Linear in them.
  void Update();
  const std::vector<Found>& all() const { return found_; }
  // Which word of which the term is: found * 2 + word; -1: none.
  int WordOf(WordTerm term) const;

  // The longest run of rounds that became no threefry, and its last term; 0 rounds: there is none.
  struct Partial {
    int rounds = 0;
    WordTerm last = kNoTerm;
  };
  Partial longest_partial() const;

 private:
  // After some rounds, before the key that follows the fourth, eighth ... is added.
  struct State {
    WordTerm v0, v1;          // the counter by now
    WordTerm start0, start1;  // x0 + k0, x1 + k1
    std::array<WordTerm, 3> keys;
    int rounds;
    bool used;  // another round followed
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
