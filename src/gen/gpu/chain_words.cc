#include "gen/gpu/chain_words.h"

#include <algorithm>
#include <unordered_set>

#include "analysis/packed_preds.h"
#include "gen/gpu/gpu.h"
#include "gen/gpu/warp_roles.h"

namespace tokamak::gpu {
namespace {

// The preds of a line of a tile (definition).
constexpr int64_t kLinePreds = kLineWords * kPredsPerWord;

class WordsFinder {
 public:
  WordsFinder(const FusedRegion& region, const ChainRegion& found)
      : region_(region), found_(found) {}

  std::vector<ChainWords> Run() {
    for (const Instr* instr : region_.instrs) {
      const Dims* along = found_.along->Of(*instr);
      if (along == nullptr || !instr->info().Is(kElementwise)) continue;
      for (const Instr* operand : instr->operands())
        if (operand->shape().dims() == instr->shape().dims()) Find(*operand, *along);
    }
    return std::move(all_);
  }

 private:
  // The preds that a value is computed from, element by element.
  void Find(const Instr& instr, const Dims& along) {
    bool is_inside = std::ranges::count(region_.instrs, &instr) > 0;
    if (!is_inside || found_.along->Of(instr) != nullptr || !seen_.insert(&instr).second) return;
    if (PackedWords words = PackedWordsOf(instr); words.array != nullptr)
      return Add(instr, words, along);
    if (!instr.info().Is(kElementwise)) return;
    for (const Instr* operand : instr.operands())
      if (operand->shape().dims() == instr.shape().dims()) Find(*operand, along);
  }

  // If the copy engine can read the words of a tile.
  void Add(const Instr& pred, const PackedWords& packed, const Dims& along) {
    const Instr& words = *packed.array;
    const DotChain& chain = found_.chain;
    if (std::ranges::count(region_.inputs, &words) == 0) return;
    bool is_of_columns = chain.column == along.back();
    if (!is_of_columns && chain.row != along.back()) return;
    const Dims& dims = words.shape().dims();
    if (dims.back() % kLineWords != 0) return;
    size_t rank = 1, lines = 0;
    for (size_t d = 0; d + 1 < dims.size(); ++d) {
      if (dims[d] == 1) continue;
      int64_t dim = along[static_cast<size_t>(packed.dims[d])];
      if (dim < 0) return;
      ++rank;
      if ((is_of_columns ? chain.row : chain.column) == dim) ++lines;
    }
    if (rank <= TileCopy::kMaxRank && lines == 1 && HasLiveWords(packed, along, is_of_columns))
      all_.push_back({&pred, &words, along, packed.dims, is_of_columns});
  }

  // Whether all live columns have words.
  bool HasLiveWords(const PackedWords& packed, const Dims& along, bool is_of_columns) const {
    if (!packed.live) return true;
    const auto& [line, first, last, masked] = *packed.live;
    const LiveColumns& live = found_.live;
    std::optional<int64_t> line_dim = is_of_columns ? found_.chain.row : found_.chain.column;
    if (line_dim != along[static_cast<size_t>(line)]) return false;
    if (live.masked != nullptr && live.masked != masked) return false;
    LiveLine own = LiveLineOf(live, is_of_columns);
    return (!first || (own.first && *own.first >= *first)) &&
           (!last || (own.last && *own.last <= *last));
  }

  const FusedRegion& region_;
  const ChainRegion& found_;
  std::vector<ChainWords> all_;
  std::unordered_set<const Instr*> seen_;
};

}  // namespace

LiveLine LiveLineOf(const LiveColumns& live, bool is_of_columns) {
  if (is_of_columns) return {live.first, live.last};
  auto negated = [](std::optional<int64_t> x) { return x ? std::optional(-*x) : std::nullopt; };
  return {negated(live.last), negated(live.first)};
}

std::vector<ChainWords> WordsOf(const FusedRegion& region, const ChainRegion& found) {
  return WordsFinder(region, found).Run();
}

int64_t ChainWords::TileBytes(int64_t rows, int64_t columns) const {
  return (is_of_columns ? rows : columns) * TileCopy::kAlignment;
}

ChainPackedPreds::ChainPackedPreds(KernelBuilder& b, ElementEmitter& emitter,
                                   const ChainRegion& found, const ChainTiling& tiling)
    : b_(b), emitter_(emitter), found_(found), t_(tiling) {}

void ChainPackedPreds::Declare() {
  for (const ChainWords& words : found_.words) {
    std::string name = "packed" + (copied_.empty() ? "" : std::to_string(copied_.size()));
    Copied& copied = copied_.emplace_back();
    copied.words = &words;
    copied.lines = words.is_of_columns ? t_.rows : t_.columns;
    copied.input = emitter_.InputOf(*words.words);
    copied.tiles = b_.Local(name, ScalarType::kU32, Space::kShared,
                            t_.stages * copied.lines * kLineWords, MatrixMultiply::kPanelBytes);
    if (words.is_of_columns)
      copied.registers = b_.Local(name + "_words", ScalarType::kU32, Space::kRegisters,
                                  kHalfFragments * WordsOfTile());
    copied.full = b_.Mbarriers(name + "_full", t_.stages, 1);
    copied.empty = b_.Mbarriers(name + "_empty", t_.stages, t_.consumers() / kWarpSize);
  }
}

void ChainPackedPreds::Fill(Scalar number, Scalar row, Scalar column,
                            const Coordinates& scores_at) {
  for (const Copied& copied : copied_) {
    const auto& [pred, words, along, dims, is_of_columns] = *copied.words;
    Scalar line = is_of_columns ? row : column, first = is_of_columns ? column : row;
    auto [stage, parity] = StageOf(b_, number, t_.stages);
    b_.Wait(copied.empty, stage, b_.Index(1) - parity);
    b_.Arrive(copied.full, stage, copied.lines * kLineWords * BytesOf(ScalarType::kU32));
    TileCopy copy;
    copy.from = copied.input;
    copy.to = copied.tiles;
    copy.to_index = (stage * b_.Index(copied.lines * kLineWords)).id();
    const Dims& sizes = words->shape().dims();
    Scalar first_word = first / b_.Index(kLinePreds) * b_.Index(kLineWords);
    copy.dimensions.push_back(
        {.size = sizes.back(), .stride = 1, .box = kLineWords, .at = first_word.id()});
    int64_t stride = sizes.back();
    for (size_t d = sizes.size() - 1; d-- > 0; stride *= sizes[d]) {
      if (sizes[d] == 1) continue;
      int64_t dim = along[static_cast<size_t>(dims[d])];
      bool is_line = (is_of_columns ? found_.chain.row : found_.chain.column) == dim;
      Scalar at = is_line ? line : scores_at[static_cast<size_t>(dim)];
      copy.dimensions.push_back(
          {.size = sizes[d], .stride = stride, .box = is_line ? copied.lines : 1, .at = at.id()});
    }
    b_.Copy(copied.full, stage, std::move(copy));
  }
}

void ChainPackedPreds::Release(Scalar lane, Scalar number) {
  if (copied_.empty()) return;
  b_.Barrier(BarrierScope::kWarp);
  b_.If(lane == b_.Index(0), [&] {
    for (const Copied& copied : copied_)
      b_.Arrive(copied.empty, StageOf(b_, number, t_.stages).index);
  });
}

int64_t ChainPackedPreds::WordsOfTile() const {
  return t_.columns / kPredsPerWord;
}

// Of the word with the pred at index `first` along its line, in shared memory. Tiles may begin
// within a line.
Scalar ChainPackedPreds::IndexOf(const Copied& copied, Scalar line, Scalar first) {
  bool is_of_columns = copied.words->is_of_columns;
  if ((is_of_columns ? t_.columns : t_.rows) % kLinePreds != 0)
    first = first + (is_of_columns ? tile_column_ : tile_row_) % b_.Index(kLinePreds);
  Scalar stage = StageOf(b_, number_, t_.stages).index;
  return stage * b_.Index(copied.lines * kLineWords) + line * b_.Index(kLineWords) +
         first / b_.Index(kPredsPerWord);
}

void ChainPackedPreds::Begin(Scalar number, Scalar tile_row, Scalar tile_column, Scalar row,
                             Scalar column) {
  number_ = number;
  tile_row_ = tile_row;
  tile_column_ = tile_column;
  row_ = row;
  column_ = column;
  PipelineStage stage = StageOf(b_, number, t_.stages);
  for (const Copied& copied : copied_) {
    b_.Wait(copied.full, stage.index, stage.parity);
    if (!copied.words->is_of_columns) continue;
    b_.For("h", LoopRole::kUnrolled, b_.Index(kHalfFragments), [&](Scalar half) {
      b_.For("w", LoopRole::kUnrolled, b_.Index(WordsOfTile()), [&](Scalar w) {
        Scalar line = row_ + half * b_.Index(kHalfRows);
        Scalar word = b_.Read(copied.tiles, IndexOf(copied, line, w * b_.Index(kPredsPerWord)));
        b_.Store(copied.registers, half * b_.Index(WordsOfTile()) + w,
                 word >> column_.As(ScalarType::kU32));
      });
    });
  }
}

std::vector<Scalar> ChainPackedPreds::ReadColumn(Scalar fragment, Scalar pair) {
  std::vector<Scalar> words;
  for (const Copied& copied : copied_) {
    words.emplace_back();
    if (copied.words->is_of_columns) continue;
    Scalar line = fragment * b_.Index(kFragment) + column_ + pair;
    Scalar word = b_.Read(copied.tiles, IndexOf(copied, line, row_));
    words.back() = word >> (row_ % b_.Index(kPredsPerWord)).As(ScalarType::kU32);
  }
  return words;
}

void ChainPackedPreds::Memoize(Scalar half, Scalar fragment, Scalar pair,
                               const std::vector<Scalar>& column_words,
                               const Coordinates& scores_at) {
  for (size_t i = 0; i < copied_.size(); ++i) {
    const Copied& copied = copied_[i];
    Coordinates at;
    for (int64_t dim : copied.words->along)
      at.push_back(dim < 0 ? b_.Index(0) : scores_at[static_cast<size_t>(dim)]);
    Scalar word = column_words[i], bit = half * b_.Index(kHalfRows);
    if (copied.words->is_of_columns) {
      Scalar fragments = b_.Index(kPredsPerWord / kFragment);
      word = b_.Read(copied.registers, half * b_.Index(WordsOfTile()) + fragment / fragments);
      bit = fragment % fragments * b_.Index(kFragment) + pair;
    }
    Scalar is_set = word >> bit.As(ScalarType::kU32) & word.Like(1);
    emitter_.Memoize(*copied.words->pred, at, {is_set == is_set.Like(1), {}});
  }
}

}  // namespace tokamak::gpu
