#include "driver/run/arguments.h"

#include <algorithm>

#include "interp/arguments.h"

namespace tokamak {
namespace {

void Flatten(const Shape& shape, std::vector<Shape>& out) {
  if (shape.IsToken()) return;
  if (!shape.IsTuple()) {
    out.push_back(shape);
    return;
  }
  for (const Shape& element : shape.elements()) Flatten(element, out);
}

// A result of dynamic size in XLA's output format: an array of the bounds that starts with the
// valid elements, packed, followed by zeros.
Literal PaddedToBounds(const Literal& literal, const Shape& stated) {
  Dims dims;
  for (size_t i = 0; i < stated.dims().size(); ++i) {
    int64_t size = stated.dim(i) != kDynamic ? stated.dim(i) : stated.bounds()[i];
    if (size == kDynamic || size < literal.shape().dim(i)) return literal;
    dims.push_back(size);
  }
  Shape shape = literal.shape().WithDims(std::move(dims));
  size_t width = static_cast<size_t>(BytesOf(literal.type()));
  std::vector<std::byte> data(static_cast<size_t>(shape.ElementCount()) * width);
  for (int64_t i = 0; i < literal.shape().ElementCount(); ++i) {
    const std::byte* from =
        literal.data().data() + (literal.is_splat() ? 0 : static_cast<size_t>(i) * width);
    std::copy(from, from + width, data.data() + static_cast<size_t>(i) * width);
  }
  return Literal::Array(std::move(shape), Bytes::FromVector(std::move(data)));
}

void NameValue(const Value& value, const Shape& stated,
               std::vector<std::pair<std::string, Literal>>& named) {
  if (value.shape().IsToken()) return;
  if (!value.shape().IsTuple()) {
    Literal literal = LiteralFromValue(value);
    if (stated.IsArray() && !stated.bounds().empty()) literal = PaddedToBounds(literal, stated);
    named.emplace_back("out_" + std::to_string(named.size()), std::move(literal));
    return;
  }
  for (size_t i = 0; i < value.elements().size(); ++i)
    NameValue(value.elements()[i], i < stated.elements().size() ? stated.elements()[i] : Shape(),
              named);
}

class StoredArrays final : public ArraySource {
 public:
  explicit StoredArrays(const NpzFile& file) : file_(file) {}
  Result<Value> Array(int64_t number, const Shape& shape) override {
    std::string name = "in_" + std::to_string(number);
    const Literal* stored = file_.Find(name);
    if (stored == nullptr) return MissingArray(name, shape);
    TOK_TRY(Literal literal, FromCarrier(*stored, shape, name, file_.path));
    return ValueFromLiteral(literal);
  }

 private:
  Error MissingArray(const std::string& name, const Shape& shape) const {
    Error error = MakeError(ErrorCode::kMissingArray,
                            "npz: there is no array '" + name + "', which the program takes as " +
                                ToString(shape.WithoutLayout()),
                            {.file = file_.path});
    constexpr size_t kShown = 8;  // names (chosen: fits a line)
    std::string names = file_.arrays.empty() ? "none" : "";
    for (size_t i = 0; i < std::min(file_.arrays.size(), kShown); ++i)
      names += (i == 0 ? "" : ", ") + file_.arrays[i].first;
    if (file_.arrays.size() > kShown) names += " ...";
    error.notes.push_back("arrays of the file: " + names);
    error.notes.push_back("np.savez(file, in_0=x, in_1=y) names them");
    return error;
  }

  const NpzFile& file_;
};

}  // namespace

std::vector<Shape> FlattenParameters(const Computation& entry) {
  std::vector<Shape> shapes;
  for (const Instr* parameter : entry.parameters()) Flatten(parameter->shape(), shapes);
  return shapes;
}

Result<std::vector<Value>> ArgumentsFrom(const NpzFile& file, const Computation& entry) {
  StoredArrays stored(file);
  return MakeArguments(entry, stored);
}

std::vector<std::pair<std::string, Literal>> NameResults(const std::vector<Value>& results,
                                                         const Computation& entry) {
  std::vector<Shape> stated;
  Flatten(entry.root()->shape(), stated);
  std::vector<std::pair<std::string, Literal>> named;
  size_t next = 0;  // index into the results without tokens
  for (const Value& result : results)
    NameValue(result, !result.shape().IsToken() && next < stated.size() ? stated[next++] : Shape(),
              named);
  return named;
}

}  // namespace tokamak
