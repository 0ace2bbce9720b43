#include "rewrite/library/library.h"

#include <algorithm>

namespace tokamak {

Instr* LibraryCall::No(std::string why) {
  if (why_.empty()) why_ = std::move(why);
  return nullptr;
}

double LibraryCall::Number(const Json& config, std::string_view name, double otherwise) {
  const Json* field = config.Find(name);
  if (field == nullptr) return otherwise;
  std::optional<double> number = field->AsNumber();
  if (!number) No(std::string(name) + " is not a number");
  return number.value_or(otherwise);
}

std::string LibraryCall::Text(const Json& config, std::string_view name,
                              std::string_view otherwise) {
  const Json* field = config.Find(name);
  if (field == nullptr) return std::string(otherwise);
  if (field->kind != Json::Kind::kText) No(std::string(name) + " is not a string");
  return field->text;
}

bool LibraryCall::KnowsAll(const Json& config, std::initializer_list<std::string_view> read,
                           std::initializer_list<std::string_view> harmless) {
  constexpr std::string_view kOfAll[] = {"operation_queue_id",
                                         "wait_on_operation_queues",
                                         "force_earliest_schedule",
                                         "reification_cost",
                                         "device_type",
                                         "algorithm"};
  for (const std::string& name : config.names) {
    std::string_view key = name;
    if (std::ranges::find(read, key) == read.end() &&
        std::ranges::find(harmless, key) == harmless.end() &&
        std::ranges::find(kOfAll, key) == std::end(kOfAll)) {
      No("its configuration has " + name);
      return false;
    }
  }
  return true;
}

bool LibraryCall::ReadDot(const Json* numbers, DotAttrs& attrs) {
  if (numbers == nullptr) {
    No("no dimension numbers");
    return false;
  }
  std::pair<std::string_view, Dims*> lists[] = {
      {"lhs_contracting_dimensions", &attrs.lhs_contracting},
      {"rhs_contracting_dimensions", &attrs.rhs_contracting},
      {"lhs_batch_dimensions", &attrs.lhs_batch},
      {"rhs_batch_dimensions", &attrs.rhs_batch}};
  for (auto [name, dims] : lists) {
    const Json* list = numbers->Find(name);
    if (list == nullptr) continue;
    std::optional<std::vector<int64_t>> ints = list->AsInts();
    if (!ints) {
      No(std::string(name) + " is not a list of numbers");
      return false;
    }
    *dims = *std::move(ints);
  }
  return true;
}

Shape LibraryCall::Wide(const Shape& shape) const {
  bool narrow = IsReal(shape.type()) && InfoOf(shape.type()).bits < 32;
  return narrow ? shape.WithoutLayout().WithType(ElementType::kF32) : shape.WithoutLayout();
}

Instr* LibraryCall::Convert(Instr* x, ElementType type) {
  if (x == nullptr || x->shape().type() == type) return x;
  return make.MakeShaped(Op::kConvert, x->shape().WithoutLayout().WithType(type), {x});
}

Instr* LibraryCall::Scale(Instr* x, double factor) {
  if (x == nullptr || factor == 1) return x;
  return make.Make(Op::kMultiply, {x, make.Filled(x->shape(), factor)});
}

Instr* LibraryCall::Relu(Instr* x) {
  return x == nullptr ? x : make.Make(Op::kMaximum, {x, make.Filled(x->shape(), 0.0)});
}

}  // namespace tokamak
