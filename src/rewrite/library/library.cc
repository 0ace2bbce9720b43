#include "rewrite/library/library.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <nlohmann/json.hpp>

namespace tokamak {
namespace {

using nlohmann::json;

std::optional<double> NumberOf(const json& field) {
  if (field.is_number()) return field.get<double>();
  if (!field.is_string()) return std::nullopt;
  const std::string& text = field.get_ref<const std::string&>();
  char* end = nullptr;
  double number = std::strtod(text.c_str(), &end);
  return text.empty() || end != text.c_str() + text.size() ? std::nullopt : std::optional(number);
}

// An integer that a double represents exactly.
std::optional<int64_t> IntOf(const json& field) {
  std::optional<double> number = NumberOf(field);
  if (!number || !(*number >= -1e15 && *number <= 1e15)) return std::nullopt;
  return static_cast<int64_t>(*number);
}

}  // namespace

Instr* LibraryCallReader::No(std::string why) {
  if (why_.empty()) why_ = std::move(why);
  return nullptr;
}

const json* LibraryCallReader::Find(const json& config, std::string_view name) {
  auto field = config.find(std::string(name));
  return field == config.end() ? nullptr : &*field;
}

const json& LibraryCallReader::Config(std::string_view name) const {
  const json* wrapped = Find(config_, name);
  return wrapped != nullptr ? *wrapped : config_;
}

double LibraryCallReader::Number(const json& config, std::string_view name, double otherwise) {
  const json* field = Find(config, name);
  if (field == nullptr) return otherwise;
  std::optional<double> number = NumberOf(*field);
  if (!number) No(std::string(name) + " is not a number");
  return number.value_or(otherwise);
}

std::string LibraryCallReader::Text(const json& config, std::string_view name,
                                    std::string_view otherwise) {
  const json* field = Find(config, name);
  if (field == nullptr) return std::string(otherwise);
  if (field->is_string()) return field->get<std::string>();
  if (field->is_primitive()) return field->dump();
  No(std::string(name) + " is not a string");
  return "";
}

bool LibraryCallReader::KnowsAll(const json& config, std::initializer_list<std::string_view> read,
                                 std::initializer_list<std::string_view> harmless) {
  constexpr std::string_view kOfAll[] = {"operation_queue_id",
                                         "wait_on_operation_queues",
                                         "force_earliest_schedule",
                                         "reification_cost",
                                         "device_type",
                                         "algorithm"};
  if (!config.is_object()) return true;
  for (const auto& [name, field] : config.items()) {
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

bool LibraryCallReader::ReadDot(const json* numbers, DotAttrs& attrs) {
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
    const json* list = Find(*numbers, name);
    if (list == nullptr) continue;
    bool fits = list->is_array();
    for (size_t i = 0; fits && i < list->size(); ++i) {
      std::optional<int64_t> dim = IntOf((*list)[i]);
      fits = dim.has_value();
      dims->push_back(dim.value_or(0));
    }
    if (!fits) {
      No(std::string(name) + " is not a list of numbers");
      return false;
    }
  }
  return true;
}

Shape LibraryCallReader::Wide(const Shape& shape) const {
  bool narrow = IsReal(shape.type()) && InfoOf(shape.type()).bits < 32;
  return narrow ? shape.WithoutLayout().WithType(ElementType::kF32) : shape.WithoutLayout();
}

Instr* LibraryCallReader::Convert(Instr* x, ElementType type) {
  if (x == nullptr || x->shape().type() == type) return x;
  return make.MakeShaped(Op::kConvert, x->shape().WithoutLayout().WithType(type), {x});
}

Instr* LibraryCallReader::Scale(Instr* x, double factor) {
  if (x == nullptr || factor == 1) return x;
  return make.Make(Op::kMultiply, {x, make.Filled(x->shape(), factor)});
}

Instr* LibraryCallReader::Relu(Instr* x) {
  return x == nullptr ? x : make.Make(Op::kMaximum, {x, make.Filled(x->shape(), 0.0)});
}

}  // namespace tokamak
