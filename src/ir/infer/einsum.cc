#include <map>
#include <optional>

#include "ir/infer/contraction.h"
#include "ir/infer/families.h"
#include "ir/infer/require.h"

// einsum and unary-einsum: "ab,bc->ac". "..." stands for the dimensions that have no letter,
// counted from the right. A dimension of size 1 is compatible with any size.

namespace tokamak {
namespace {

using Labels = std::vector<int>;
constexpr int kFirstEllipsisLabel = 1000;

// The labels of one term for an array of `rank` dimensions (-1: the rank follows from `ellipsis`).
std::optional<Labels> ReadTerm(std::string_view term, int64_t rank, int64_t& ellipsis) {
  size_t dots = term.find("...");
  int64_t letters = static_cast<int64_t>(term.size()) - (dots == std::string_view::npos ? 0 : 3);
  int64_t extra = rank < 0 ? ellipsis : rank - letters;
  if (extra < 0 || (extra > 0 && rank >= 0 && dots == std::string_view::npos)) return std::nullopt;
  if (dots != std::string_view::npos) ellipsis = std::max(ellipsis, extra);
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (i == dots) {
      for (int64_t e = extra; e > 0; --e)
        labels.push_back(kFirstEllipsisLabel + static_cast<int>(e));
      i += 2;
    } else if ((term[i] >= 'a' && term[i] <= 'z') || (term[i] >= 'A' && term[i] <= 'Z')) {
      labels.push_back(term[i]);
    } else {
      return std::nullopt;
    }
  }
  return labels;
}

Status ReadOperands(const InferInput& in, std::string_view left, std::map<int, int64_t>& sizes,
                    int64_t& ellipsis) {
  for (size_t i = 0; i < in.operands.size(); ++i) {
    size_t comma = std::min(left.find(','), left.size());
    const Shape& x = in.operands[i];
    std::optional<Labels> labels = ReadTerm(left.substr(0, comma), x.rank(), ellipsis);
    if (!labels)
      return MakeInferError(in, ErrorCode::kEinsumShapes,
                            "term \"{}\" does not label the dimensions of {}",
                            left.substr(0, comma), ToString(x));
    for (size_t d = 0; d < labels->size(); ++d) {
      int64_t& size = sizes.emplace((*labels)[d], 1).first->second;
      bool grows = size == 1 || size == kDynamic;
      if (!grows && x.dim(d) != 1 && !SizesAgree(size, x.dim(d)))
        return MakeInferError(in, ErrorCode::kEinsumShapes,
                              "dimension {} of operand {} is {}, elsewhere {}", d, i, x.dim(d),
                              size);
      if (grows && x.dim(d) != 1) size = size == kDynamic ? KnownSize(size, x.dim(d)) : x.dim(d);
    }
    bool last = i + 1 == in.operands.size();
    if (last != (comma == left.size()))
      return MakeInferError(in, ErrorCode::kEinsumSyntax,
                            "the config does not have one term per operand, {}",
                            in.operands.size());
    left.remove_prefix(std::min(comma + 1, left.size()));
  }
  return Ok();
}

Result<Sizes> EinsumSizes(const InferInput& in) {
  std::string config;
  for (char c : in.attrs.As<EinsumAttrs>().config)
    if (c != ' ') config += c;
  size_t arrow = config.find("->");
  if (arrow == std::string::npos)
    return MakeInferError(in, ErrorCode::kEinsumSyntax, "config \"{}\" has no \"->\"", config);
  std::map<int, int64_t> sizes;
  int64_t ellipsis = 0;
  TOK_RETURN_IF_ERROR(ReadOperands(in, std::string_view(config).substr(0, arrow), sizes, ellipsis));
  auto output = ReadTerm(std::string_view(config).substr(arrow + 2), -1, ellipsis);
  if (!output)
    return MakeInferError(in, ErrorCode::kEinsumSyntax,
                          "config \"{}\" has a character that is not a letter", config);
  Sizes dims;
  for (int label : *output) {
    auto size = sizes.find(label);
    if (size == sizes.end())
      return MakeInferError(in, ErrorCode::kEinsumSyntax,
                            "config \"{}\" has a result label that no operand has", config);
    dims.push_back(size->second);
  }
  return dims;
}

}  // namespace

Result<Shape> InferEinsum(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_TRY(Sizes dims, EinsumSizes(in));
  return InferProducts(in, dims);
}

Result<Shape> InferUnaryEinsum(const InferInput& in) {
  TOK_RETURN_IF_ERROR(RequireArrays(in));
  TOK_RETURN_IF_ERROR(RequirePlain(in, 0));
  TOK_TRY(Sizes dims, EinsumSizes(in));
  return InferArray(in, in.operands[0].type(), dims);
}

}  // namespace tokamak
