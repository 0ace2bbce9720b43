// einsum and unary-einsum: one iteration over all labels, those of the result first, with a stride
// per array and label.

#include <algorithm>
#include <map>

#include "interp/contraction.h"
#include "interp/evaluators.h"

namespace tokamak {
namespace {

// The labels of one term. "..." stands for all remaining dimensions: they get labels of their own,
// counted from the right, so that those of two terms match.
using Labels = std::vector<int>;

Labels LabelsOf(std::string_view term, size_t rank) {
  size_t dots = term.find("...");
  size_t letters = term.size() - (dots == std::string_view::npos ? 0 : 3);
  size_t extra = rank > letters ? rank - letters : 0;
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (i == dots) {
      for (size_t e = extra; e > 0; --e) labels.push_back(1000 + static_cast<int>(e));
      i += 2;
    } else {
      labels.push_back(term[i]);
    }
  }
  return labels;
}

struct Terms {
  std::vector<Labels> inputs;
  Labels output;
};

std::optional<Terms> ParseConfig(std::string config, std::span<const Value> operands,
                                 size_t result_rank) {
  config.erase(std::remove(config.begin(), config.end(), ' '), config.end());
  size_t arrow = config.find("->");
  if (arrow == std::string::npos) return std::nullopt;
  Terms terms;
  std::string_view left = std::string_view(config).substr(0, arrow);
  for (const Value& operand : operands) {
    size_t comma = std::min(left.find(','), left.size());
    terms.inputs.push_back(LabelsOf(left.substr(0, comma), operand.dims().size()));
    if (terms.inputs.back().size() != operand.dims().size()) return std::nullopt;
    left.remove_prefix(std::min(comma + 1, left.size()));
  }
  terms.output = LabelsOf(std::string_view(config).substr(arrow + 2), result_rank);
  return terms;
}

// The stride of an array along a label: a repeated label iterates over the diagonal.
Dims StridesAlong(const Labels& all, const Labels& own, const Dims& dims) {
  Dims strides(all.size(), 0), step = StridesOf(dims);
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t d = 0; d < own.size(); ++d)
      if (own[d] == all[i] && dims[d] != 1) strides[i] += step[d];
  }
  return strides;
}

Result<Value> Einsum(const Instr& instr, std::span<const Value> operands, const Context& context) {
  const std::string& config = instr.attrs<EinsumAttrs>().config;
  size_t rank = instr.shape().dims().size();
  std::optional<Terms> terms = ParseConfig(config, operands, rank);
  std::map<int, int64_t> sizes;
  bool consistent = terms.has_value();
  for (size_t o = 0; o < operands.size() && consistent; ++o) {
    for (size_t d = 0; d < terms->inputs[o].size(); ++d) {
      int64_t& size = sizes.emplace(terms->inputs[o][d], 1).first->second;
      int64_t dim = operands[o].dims()[d];
      if (size == 1) size = dim;
      consistent = consistent && (dim == size || dim == 1);
    }
  }
  for (int label : consistent ? terms->output : Labels{})
    consistent = consistent && sizes.count(label) > 0;
  if (!consistent) {
    return RunError(ErrorCode::kBadRunTimeShape, instr,
                    "einsum_config \"" + config + "\" does not fit its operands");
  }
  Labels all = terms->output;
  Dims dims, box;
  for (int label : all) dims.push_back(sizes[label]);
  for (const auto& [label, size] : sizes)
    if (std::find(all.begin(), all.end(), label) == all.end()) all.push_back(label);
  for (int label : all) box.push_back(sizes[label]);
  TOK_RETURN_IF_ERROR(CheckFits(instr, instr.shape().type(), dims));
  StridedView out{0, StridesAlong(all, terms->output, dims)};
  StridedView lhs{0, StridesAlong(all, terms->inputs[0], operands[0].dims())};
  StridedView rhs{0, Dims(all.size(), 0)};
  if (operands.size() > 1) rhs.strides = StridesAlong(all, terms->inputs[1], operands[1].dims());
  return DispatchStorage(instr.shape().type(), [&]<typename T>() -> Result<Value> {
    std::vector<T> a = ElementsAs<T>(operands[0]), b{T{1}};
    if (operands.size() > 1) b = ElementsAs<T>(operands[1]);
    std::vector<T> sums(static_cast<size_t>(ProductOf(dims)));
    ForEachRow<3>(
        box, {lhs, rhs, out},
        [&](const std::array<int64_t, 3>& at, int64_t count, const std::array<int64_t, 3>& step) {
          for (int64_t i = 0; i < count; ++i) {
            MulAdd(sums[static_cast<size_t>(at[2] + i * step[2])],
                   a[static_cast<size_t>(at[0] + i * step[0])],
                   b[static_cast<size_t>(at[1] + i * step[1])]);
          }
        });
    return RoundedArray(instr, dims, std::move(sums), context);
  });
}

}  // namespace

Result<Value> EvalEinsum(const Instr& instr, std::span<const Value> operands, Context& context) {
  return Einsum(instr, operands, context);
}

Result<Value> EvalUnaryEinsum(const Instr& instr, std::span<const Value> operands,
                              Context& context) {
  return Einsum(instr, operands, context);
}

}  // namespace tokamak
