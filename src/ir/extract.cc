#include "ir/extract.h"

#include <unordered_map>
#include <vector>

namespace tokamak {
namespace {

class ModuleExtractor {
 public:
  explicit ModuleExtractor(Module& to) : to_(to) {}

  void Run(std::span<const Instr* const> inputs, std::span<const Instr* const> roots) {
    Computation* main = to_.AddComputation("main");
    std::unordered_map<const Instr*, Instr*> copies;
    for (size_t i = 0; i < inputs.size(); ++i)
      copies.emplace(inputs[i], main->AppendParameter(static_cast<int64_t>(i), inputs[i]->shape(),
                                                      inputs[i]->name()));
    std::vector<Instr*> results;
    std::vector<Shape> shapes;
    for (const Instr* root : roots) {
      results.push_back(CopyOf(*root, *main, copies));
      shapes.push_back(root->shape());
    }
    main->set_root(results.size() == 1
                       ? results[0]
                       : main->Append(Op::kTuple, Shape::Tuple(std::move(shapes)), results));
    to_.set_entry(main);
  }

 private:
  using Copies = std::unordered_map<const Instr*, Instr*>;

  // The operands first. Iterative: chains of operands may be long.
  Instr* CopyOf(const Instr& instr, Computation& to, Copies& copies) {
    std::vector<const Instr*> open = {&instr};
    while (!open.empty()) {
      const Instr* next = open.back();
      size_t before = open.size();
      if (!copies.contains(next))
        for (const Instr* operand : next->operands())
          if (!copies.contains(operand)) open.push_back(operand);
      if (open.size() > before) continue;
      open.pop_back();
      if (!copies.contains(next)) copies.emplace(next, Copy(*next, to, copies));
    }
    return copies.at(&instr);
  }

  Instr* Copy(const Instr& instr, Computation& to, const Copies& copies) {
    std::vector<Instr*> operands;
    for (const Instr* operand : instr.operands()) operands.push_back(copies.at(operand));
    if (instr.op() == Op::kParameter)
      return to.AppendParameter(instr.attrs<ParameterAttrs>().number, instr.shape(), instr.name());
    Instr* copy = to.Append(instr.op(), instr.shape(), operands, instr.attrs(), instr.name());
    copy->set_captures(instr.captures());
    copy->set_origins(instr.origins());
    copy->set_pos(instr.pos());
    std::vector<Computation*> called;
    for (const Computation* callee : instr.called()) called.push_back(CopyOf(*callee));
    if (!called.empty()) copy->set_called(std::move(called));
    return copy;
  }

  Computation* CopyOf(const Computation& from) {
    if (auto found = computations_.find(&from); found != computations_.end()) return found->second;
    Computation* to = to_.AddComputation(from.name());
    computations_.emplace(&from, to);
    to->is_public = false;
    Copies copies;
    for (const Instr* instr : from.PostOrder()) copies.emplace(instr, Copy(*instr, *to, copies));
    to->set_root(copies.at(from.root()));
    return to;
  }

  Module& to_;
  std::unordered_map<const Computation*, Computation*> computations_;
};

}  // namespace

std::unique_ptr<Module> ExtractModule(std::span<const Instr* const> inputs,
                                      std::span<const Instr* const> roots, std::string name) {
  auto module = std::make_unique<Module>(std::move(name));
  if (!roots.empty()) {
    module->origins() = roots[0]->parent()->module()->origins();
    module->file = roots[0]->parent()->module()->file;
  }
  ModuleExtractor(*module).Run(inputs, roots);
  return module;
}

}  // namespace tokamak
