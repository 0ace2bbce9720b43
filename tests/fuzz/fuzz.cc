#include "fuzz/fuzz.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "ir/element_type.h"
#include "ir/op.h"

namespace tokamak::fuzz {
namespace {

bool IsWordChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
}

struct Token {
  size_t begin = 0, size = 0;
};

// Words, quoted strings and other single characters; blanks are dropped.
std::vector<Token> Tokenize(std::string_view text) {
  std::vector<Token> tokens;
  size_t at = 0;
  while (at < text.size()) {
    if (std::isspace(static_cast<unsigned char>(text[at])) != 0) {
      ++at;
      continue;
    }
    size_t end = at + 1;
    if (IsWordChar(text[at]))
      while (end < text.size() && IsWordChar(text[end])) ++end;
    tokens.push_back({at, end - at});
    at = end;
  }
  return tokens;
}

// Keywords of the grammars besides ops and types.
constexpr const char* kWords[] = {"HloModule",
                                  "ENTRY",
                                  "ROOT",
                                  "module",
                                  "func.func",
                                  "func.return",
                                  "return",
                                  "private",
                                  "public",
                                  "tensor",
                                  "dense",
                                  "array",
                                  "loc",
                                  "unknown",
                                  "callsite",
                                  "true",
                                  "false",
                                  "nan",
                                  "inf",
                                  "->",
                                  "= ",
                                  "({",
                                  "})",
                                  "<",
                                  ">",
                                  "{",
                                  "}",
                                  "(",
                                  ")",
                                  "[",
                                  "]",
                                  "%",
                                  "@",
                                  "#",
                                  "!",
                                  "dimensions={0}",
                                  "to_apply=",
                                  "calls=",
                                  "condition=",
                                  "body=",
                                  "sharding={replicated}",
                                  "metadata={op_name=\"x\"}",
                                  "slice={[0:1]}",
                                  "window={size=2 stride=2 pad=0_0}",
                                  "custom_call_target=\"x\"",
                                  "lhs_contracting_dims={1}",
                                  "rhs_contracting_dims={0}",
                                  "channel_id=1",
                                  "replica_groups={{0,1}}",
                                  "dims = [0]",
                                  "x?x",
                                  "4x?xf32",
                                  "<=4",
                                  "!quant.uniform<i8:f32, 0.5:1>",
                                  "tuple<",
                                  "!stablehlo.token",
                                  "\"\\22\"",
                                  "0x7FC00000",
                                  "\"0x0000803F\"",
                                  "// -----\n",
                                  "/*",
                                  "*/",
                                  "#loc1",
                                  "-1",
                                  "0",
                                  "1",
                                  "2",
                                  "255",
                                  "256",
                                  "2147483648",
                                  "-2147483649",
                                  "9223372036854775807",
                                  "9223372036854775808",
                                  "-9223372036854775808",
                                  "1e400",
                                  "1e-400",
                                  "4294967296",
                                  "1152921504606846976"};

// kWords plus the names in ops.def and element_types.def.
const std::vector<std::string>& Dictionary() {
  static const auto words = [] {
    std::vector<std::string> list(std::begin(kWords), std::end(kWords));
    for (const OpInfo& info : AllOps()) {
      list.emplace_back(info.name);
      if (!info.mlir.empty()) list.emplace_back(info.mlir);
    }
#define TOK_TYPE(id, hlo, mlir, ...) \
  list.emplace_back(hlo);            \
  list.emplace_back(mlir);
#include "ir/element_types.def"
    return list;
  }();
  return words;
}

class Mutator {
 public:
  Mutator(std::string text, unsigned seed) : text_(std::move(text)), random_(seed) {}

  std::string Mutate() {
    int changes = 1 + static_cast<int>(Below(3));
    for (int i = 0; i < changes; ++i) MutateOnce();
    return std::move(text_);
  }

 private:
  size_t Below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  void MutateOnce() {
    tokens_ = Tokenize(text_);
    if (tokens_.empty()) {
      text_ += Dictionary()[Below(Dictionary().size())];
      return;
    }
    const Token& token = tokens_[Below(tokens_.size())];
    switch (Below(14)) {
      case 0:
        text_.erase(token.begin, token.size);
        break;
      case 1:
        text_.insert(token.begin, text_.substr(token.begin, token.size) + " ");
        break;
      case 2:
      case 3:
        text_.replace(token.begin, token.size, Dictionary()[Below(Dictionary().size())]);
        break;
      case 4: {
        const Token& other = tokens_[Below(tokens_.size())];
        text_.replace(token.begin, token.size, text_.substr(other.begin, other.size));
        break;
      }
      case 5:
        ChangeNumber();
        break;
      case 6:
        DropLine(token.begin);
        break;
      case 7:
        CopyLine(token.begin, tokens_[Below(tokens_.size())].begin);
        break;
      case 8:
        ChangeEverywhere(std::string(text_, token.begin, token.size));
        break;
      case 9:
        ChangeDigits();
        break;
      case 10:
        ChangeString();
        break;
      case 11:
        ChangeOp();
        break;
      case 12:
        ChangeType();
        break;
      default:
        text_.insert(token.begin, Dictionary()[Below(Dictionary().size())] + " ");
        break;
    }
  }

  void ChangeNumber() {
    std::vector<Token> numbers;
    for (const Token& token : tokens_)
      if (std::isdigit(static_cast<unsigned char>(text_[token.begin])) != 0)
        numbers.push_back(token);
    if (numbers.empty()) return;
    static constexpr const char* kNumbers[] = {
        "0", "1", "2", "3", "7", "8", "63", "64", "65", "-1", "1000000", "4611686018427387904"};
    const Token& token = numbers[Below(numbers.size())];
    text_.replace(token.begin, token.size, kNumbers[Below(std::size(kNumbers))]);
  }

  // Replaces one word in the whole program, so that it stays well typed.
  void ChangeEverywhere(const std::string& word) {
    std::string other = Dictionary()[Below(Dictionary().size())];
    for (size_t i = tokens_.size(); i-- > 0;)
      if (std::string_view(text_).substr(tokens_[i].begin, tokens_[i].size) == word)
        text_.replace(tokens_[i].begin, tokens_[i].size, other);
  }

  // Replaces one op by another with as many operands and no attributes.
  void ChangeOp() {
    const Token& token = tokens_[Below(tokens_.size())];
    std::string_view word = std::string_view(text_).substr(token.begin, token.size);
    std::optional<Op> in_hlo = OpFromName(word), in_mlir = OpFromMlirName(word);
    if (!in_hlo && !in_mlir) return;
    const OpInfo& from = InfoOf(in_hlo ? *in_hlo : *in_mlir);
    const OpInfo& to = AllOps()[Below(AllOps().size())];
    std::string_view name = in_hlo ? to.name : to.mlir;
    if (to.arity == from.arity && to.attrs == from.attrs && !name.empty())
      text_.replace(token.begin, token.size, name);
  }

  // Replaces one element type in the whole program: tensor<2xf32> as well as f32[2].
  void ChangeType() {
    const std::string from = AnyTypeName(), to = AnyTypeName();
    for (size_t at = text_.find(from); at != std::string::npos; at = text_.find(from, at)) {
      text_.replace(at, from.size(), to);
      at += to.size();
    }
  }
  std::string AnyTypeName() {
    static constexpr const char* kNames[] = {"f32",  "f64", "bf16", "s32", "s64",  "u32",  "u64",
                                             "pred", "i1",  "i32",  "i64", "ui32", "ui64", "i8"};
    return kNames[Below(std::size(kNames))];
  }

  // Changes a number, possibly inside a word: the 3 of 2x3xf32, the 1 of %arg1.
  void ChangeDigits() {
    std::vector<Token> numbers;
    for (size_t at = 0; at < text_.size(); ++at) {
      if (std::isdigit(static_cast<unsigned char>(text_[at])) == 0) continue;
      size_t begin = at;
      while (at < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at])) != 0) ++at;
      numbers.push_back({begin, at - begin});
    }
    if (numbers.empty()) return;
    const Token& number = numbers[Below(numbers.size())];
    text_.replace(number.begin, number.size, std::to_string(Below(10)));
  }

  // Inserts a character that a writer must escape into a quoted string.
  void ChangeString() {
    std::vector<size_t> quotes;
    for (size_t at = 0; at < text_.size(); ++at)
      if (text_[at] == '"') quotes.push_back(at + 1);
    static constexpr const char* kEscapes[] = {"\\\\", "\\\"", "\\n",  "\\t", "\\00",
                                               "\\C3", "'",    "\x80", "{",   "%"};
    if (!quotes.empty())
      text_.insert(quotes[Below(quotes.size())], kEscapes[Below(std::size(kEscapes))]);
  }

  Token LineAt(size_t at) const {
    size_t begin = text_.rfind('\n', at);
    begin = begin == std::string::npos ? 0 : begin + 1;
    size_t end = text_.find('\n', at);
    end = end == std::string::npos ? text_.size() : end + 1;
    return {begin, end - begin};
  }
  void DropLine(size_t at) {
    Token line = LineAt(at);
    text_.erase(line.begin, line.size);
  }
  void CopyLine(size_t from, size_t to) {
    Token line = LineAt(from), target_line = LineAt(to);
    text_.insert(target_line.begin, text_.substr(line.begin, line.size));
  }

  std::string text_;
  std::minstd_rand random_;
  std::vector<Token> tokens_;
};

}  // namespace

void Broken(const std::string& what) {
  std::fprintf(stderr, "BROKEN: %s\n", what.c_str());
  std::abort();
}

void CheckLocated(const Error& error) {
  if (error.message.empty()) Broken("an error says nothing: " + CodeText(error.code));
  if (error.where.line <= 0 && error.where.offset < 0)
    Broken("an error has no place: " + Render(error));
}

size_t MutateText(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (seed % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::string text(reinterpret_cast<const char*>(data), size);
  text = Mutator(std::move(text), seed).Mutate();
  if (text.size() > max_size) text.resize(max_size);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

}  // namespace tokamak::fuzz
