#include "gen/gpu/chain_words.h"

#include <algorithm>
#include <unordered_set>

#include "analysis/packed_preds.h"
#include "gen/gpu/gpu.h"

namespace tokamak::gpu {
namespace {

// The words of a line. Boxes begin at multiples of 16 bytes along their lines, and these are the
// bytes of the shortest one (TileCopy::kAlignment).
constexpr int64_t kLineWords = TileCopy::kAlignment / 4, kLinePreds = kLineWords * kPredsPerWord;

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
    if (const Instr* words = PackedWordsOf(instr)) return Add(instr, *words, along);
    if (!instr.info().Is(kElementwise)) return;
    for (const Instr* operand : instr.operands())
      if (operand->shape().dims() == instr.shape().dims()) Find(*operand, along);
  }

  // If the copy engine can read the words of a tile.
  void Add(const Instr& pred, const Instr& words, const Dims& along) {
    const DotChain& chain = found_.chain;
    if (std::ranges::count(region_.inputs, &words) == 0) return;
    bool is_of_columns = chain.column == along.back();
    if (!is_of_columns && chain.row != along.back()) return;
    const Dims& dims = words.shape().dims();
    if (dims.back() % kLineWords != 0) return;
    size_t rank = 1, lines = 0;
    for (size_t d = 0; d + 1 < dims.size(); ++d) {
      if (dims[d] == 1) continue;
      if (along[d] < 0) return;
      ++rank;
      if ((is_of_columns ? chain.row : chain.column) == along[d]) ++lines;
    }
    if (rank <= TileCopy::kMaxRank && lines == 1)
      all_.push_back({&pred, &words, along, is_of_columns});
  }

  const FusedRegion& region_;
  const ChainRegion& found_;
  std::vector<ChainWords> all_;
  std::unordered_set<const Instr*> seen_;
};

}  // namespace

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
    copied.full = b_.Mbarriers(name + "_full", t_.stages, 1);
    copied.empty = b_.Mbarriers(name + "_empty", t_.stages, t_.consumers() / kWarpSize);
  }
}

void ChainPackedPreds::Fill(Scalar number, Scalar row, Scalar column,
                            const Coordinates& scores_at) {
  for (const Copied& copied : copied_) {
    const auto& [pred, words, along, is_of_columns] = *copied.words;
    Scalar line = is_of_columns ? row : column, first = is_of_columns ? column : row;
    Scalar stage = StageOf(number);
    b_.Wait(copied.empty, stage, b_.Index(1) - ParityOf(number));
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
      bool is_line = (is_of_columns ? found_.chain.row : found_.chain.column) == along[d];
      Scalar at = is_line ? line : scores_at[static_cast<size_t>(along[d])];
      copy.dimensions.push_back(
          {.size = sizes[d], .stride = stride, .box = is_line ? copied.lines : 1, .at = at.id()});
    }
    b_.Copy(copied.full, stage, std::move(copy));
  }
}

void ChainPackedPreds::Wait(Scalar number) {
  for (const Copied& copied : copied_) b_.Wait(copied.full, StageOf(number), ParityOf(number));
}

void ChainPackedPreds::Release(Scalar lane, Scalar number) {
  if (copied_.empty()) return;
  b_.Barrier(BarrierScope::kWarp);
  b_.If(lane == b_.Index(0), [&] {
    for (const Copied& copied : copied_) b_.Arrive(copied.empty, StageOf(number));
  });
}

Scalar ChainPackedPreds::BitAt(const Copied& copied, const Place& place) {
  Scalar per_word = b_.Index(kPredsPerWord), line_words = b_.Index(kLineWords);
  bool is_of_columns = copied.words->is_of_columns;
  // Tiles may begin within a line.
  Scalar unit = is_of_columns ? place.unit : place.row;
  Scalar start = is_of_columns ? place.tile_column : place.tile_row;
  if ((is_of_columns ? t_.columns : t_.rows) % kLinePreds != 0)
    unit = unit + start % b_.Index(kLinePreds);
  Scalar line = is_of_columns ? place.row : place.unit + place.in_unit;
  Scalar stage = StageOf(place.number) * b_.Index(copied.lines * kLineWords);
  Scalar word = b_.Read(copied.tiles, stage + line * line_words + unit / per_word);
  // Once for all units of a word.
  if (is_of_columns) word = word >> place.in_unit.As(ScalarType::kU32);
  return word >> (unit % per_word).As(ScalarType::kU32) & word.Like(1);
}

void ChainPackedPreds::Memoize(const Place& place, const Coordinates& scores_at) {
  for (const Copied& copied : copied_) {
    Coordinates at;
    for (int64_t dim : copied.words->along)
      at.push_back(dim < 0 ? b_.Index(0) : scores_at[static_cast<size_t>(dim)]);
    Scalar bit = BitAt(copied, place);
    emitter_.Memoize(*copied.words->pred, at, {bit == bit.Like(1), {}});
  }
}

}  // namespace tokamak::gpu
