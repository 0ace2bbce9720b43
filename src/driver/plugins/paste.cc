#include "driver/plugins/paste.h"

#include <cctype>
#include <unordered_map>
#include <utility>

#include "ir/infer.h"
#include "rewrite/replace.h"
#include "text/read.h"

namespace tokamak {
namespace {

constexpr std::string_view kOwnNames = "tok_operand_";  // of parameters in snippets

Computation* CopyComputation(const Computation& from, Module& to, const Instr& like) {
  Computation* copy = to.AddComputation(from.name());
  copy->is_public = false;
  copy->origins = like.origins();
  std::unordered_map<const Instr*, Instr*> copies;
  for (const Instr* parameter : from.parameters())
    copies[parameter] = copy->AppendParameter(parameter->attrs<ParameterAttrs>().number,
                                              parameter->shape(), parameter->name());
  for (const Instr* instr : from.PostOrder()) {
    if (copies.contains(instr)) continue;
    std::vector<Instr*> operands;
    for (const Instr* operand : instr->operands()) operands.push_back(copies.at(operand));
    copies[instr] = CopyAcross(*instr, *copy, std::move(operands), like);
  }
  copy->set_root(copies.at(from.root()));
  return copy;
}

// Replaces $0 by the name and @0 by the shape of operand 0, and @ by the shape of `like`.
Result<std::string> Substituted(const std::string& text, const Instr& like,
                                std::span<Instr* const> operands) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c != '$' && c != '@') {
      out += c;
      continue;
    }
    size_t end = i + 1;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    std::string digits = text.substr(i + 1, end - i - 1);
    if (digits.empty() && c == '@') {
      out += ToString(like.shape());
      continue;
    }
    // Longer numbers are out of range.
    size_t number = digits.empty() || digits.size() > 4 ? operands.size() : std::stoul(digits);
    if (number >= operands.size())
      return MakeError(ErrorCode::kPluginFailed, "build: " + text.substr(i, end - i) +
                                                     " is none of the " +
                                                     std::to_string(operands.size()) + " operands");
    out += c == '$' ? std::string(kOwnNames) + digits : ToString(operands[number]->shape());
    i = end - 1;
  }
  return out;
}

// The lines with a root, as the body of an entry.
std::string BodyOf(const std::string& lines) {
  std::string body = lines;
  while (!body.empty() && std::isspace(static_cast<unsigned char>(body.back())) != 0)
    body.pop_back();
  size_t last = body.rfind('\n');
  last = last == std::string::npos ? 0 : last + 1;
  size_t first = body.find_first_not_of(" \t", last);
  std::string root = first == std::string::npos ? "" : body.substr(first);
  body.resize(last);
  if (root.starts_with("ROOT ")) root.erase(0, 5);
  if (root.find(" = ") == std::string::npos) root = std::string(kOwnNames) + "root = " + root;
  return body + "ROOT " + root + "\n";
}

Error BuildError(const Error& why) {
  return MakeError(ErrorCode::kPluginFailed, "build: " + why.message);
}

}  // namespace

Instr* CopyAcross(const Instr& instr, Computation& to, std::vector<Instr*> operands,
                  const Instr& like) {
  std::vector<Computation*> called;
  for (const Computation* callee : instr.called())
    called.push_back(CopyComputation(*callee, *to.module(), like));
  Instr* copy = CopyTo(to, instr, std::move(operands));
  copy->set_called(std::move(called));
  copy->set_origins(like.origins());
  copy->set_pos(like.pos());
  if (copy->name().starts_with(kOwnNames)) copy->set_name("");
  return copy;
}

Result<Instr*> PasteEntry(const Computation& entry, Instr& like,
                          std::span<Instr* const> arguments) {
  const std::vector<Instr*>& parameters = entry.parameters();
  if (parameters.size() != arguments.size())
    return MakeError(ErrorCode::kPluginFailed,
                     "build: the program has " + std::to_string(parameters.size()) +
                         " parameters, given are " + std::to_string(arguments.size()));
  std::unordered_map<const Instr*, Instr*> copies;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!(parameters[i]->shape() == arguments[i]->shape()))
      return MakeError(ErrorCode::kPluginFailed, "build: parameter " + std::to_string(i) + " is " +
                                                     ToString(parameters[i]->shape()) + ", not " +
                                                     ToString(arguments[i]->shape()));
    if (arguments[i]->parent() != like.parent())
      return MakeError(ErrorCode::kPluginFailed,
                       "build: operand " + std::to_string(i) + " is of another computation");
    copies[parameters[i]] = arguments[i];
  }
  for (const Instr* instr : entry.PostOrder()) {
    if (instr->op() == Op::kParameter) continue;
    std::vector<Instr*> operands;
    for (const Instr* operand : instr->operands()) operands.push_back(copies.at(operand));
    copies[instr] = CopyAcross(*instr, *like.parent(), std::move(operands), like);
  }
  return copies.at(entry.root());
}

Result<Instr*> BuildFromText(Instr& like, const std::string& text,
                             std::span<Instr* const> operands) {
  bool is_program =
      text.find("HloModule") != std::string::npos || text.find("func.func") != std::string::npos;
  std::string program = text;
  if (!is_program) {
    TOK_TRY(std::string lines, Substituted(text, like, operands));
    program = "HloModule snippet\nENTRY snippet {\n";
    for (size_t i = 0; i < operands.size(); ++i)
      program += std::string(kOwnNames) + std::to_string(i) + " = " +
                 ToString(operands[i]->shape()) + " parameter(" + std::to_string(i) + ")\n";
    program += BodyOf(lines) + "}\n";
  }
  Result<std::unique_ptr<Module>> module = ReadModule(Bytes::FromString(program), "snippet");
  if (!module.ok()) return BuildError(module.error());
  if (Status verified = VerifyModule(*module.value()); !verified.ok())
    return BuildError(verified.error());
  const Computation* entry = module.value()->entry();
  if (entry == nullptr)
    return MakeError(ErrorCode::kPluginFailed, "build: the program has no entry");
  return PasteEntry(*entry, like, operands);
}

}  // namespace tokamak
