// NumPy's .npz: a zip archive of .npy arrays. A .npy file is a magic word, a version, the length of
// a header, the header and the elements:
//
//   \x93NUMPY 1 0 <u16 size> {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } ... data
//
// The header is a Python dict literal; only the subset that NumPy writes is parsed. Files are
// untrusted: sizes are checked against the bytes that exist before anything is allocated. Row-major
// little-endian arrays are not copied, they point into the archive. Types that NumPy lacks travel
// as unsigned integers of the same bits (carriers, npz.h).

#include "text/npz.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "text/zip.h"

namespace tokamak {
namespace {

struct NpyType {
  std::string_view name;  // without the byte order
  ElementType type;
  int swap;  // unit in bytes that a foreign byte order reverses
};

constexpr NpyType kTypes[] = {
    {"b1", ElementType::kPred, 1}, {"i1", ElementType::kS8, 1},    {"i2", ElementType::kS16, 2},
    {"i4", ElementType::kS32, 4},  {"i8", ElementType::kS64, 8},   {"u1", ElementType::kU8, 1},
    {"u2", ElementType::kU16, 2},  {"u4", ElementType::kU32, 4},   {"u8", ElementType::kU64, 8},
    {"f2", ElementType::kF16, 2},  {"f4", ElementType::kF32, 4},   {"f8", ElementType::kF64, 8},
    {"c8", ElementType::kC64, 4},  {"c16", ElementType::kC128, 8}, {"V1", ElementType::kU8, 1},
    {"V2", ElementType::kU16, 2},  // how NumPy stores a bfloat16 that it does not know
};

struct Header {
  const NpyType* type = nullptr;
  bool big_endian = false, fortran = false;
  Dims dims;
  size_t data = 0;  // offset of the elements
};

// The header is a Python dict with three known keys; only that subset of Python is parsed.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view name, const std::string& file)
      : text_(text), name_(name), file_(file) {}

  Result<Header> Parse() {
    Header header;
    bool seen_type = false, seen_order = false, seen_shape = false;
    if (!Eat('{')) return Malformed("no dict");
    while (!Eat('}')) {
      std::string key = Quoted();
      if (!Eat(':')) return Malformed("no ':' after key '" + key + "'");
      if (key == "descr") {
        TOK_RETURN_IF_ERROR(ParseType(Quoted(), header));
        seen_type = true;
      } else if (key == "fortran_order") {
        std::string word = Word();
        if (word != "True" && word != "False") return Malformed("fortran_order is not a bool");
        header.fortran = word == "True";
        seen_order = true;
      } else if (key == "shape") {
        TOK_RETURN_IF_ERROR(ParseShape(header.dims));
        seen_shape = true;
      } else {
        return Malformed("unknown key '" + key + "'");
      }
      Eat(',');
    }
    if (!seen_type || !seen_order || !seen_shape) return Malformed("a key is missing");
    return header;
  }

 private:
  Error Malformed(const std::string& what) const {
    return MakeError(ErrorCode::kMalformedNpz, "npz: header of '" + name_ + "': " + what,
                     {.file = file_});
  }
  void Skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool Eat(char c) {
    Skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string Quoted() {
    Skip();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return {};
    size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return {};
    std::string inside(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return inside;
  }
  std::string Word() {
    Skip();
    size_t begin = at_;
    while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  Status ParseType(const std::string& descr, Header& header) const {
    if (!descr.empty()) {
      header.big_endian = descr[0] == '>';
      bool has_order = std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
      std::string_view name = std::string_view(descr).substr(has_order ? 1 : 0);
      for (const NpyType& row : kTypes)
        if (row.name == name) header.type = &row;
    }
    if (header.type != nullptr) return Ok();
    return MakeError(ErrorCode::kUnsupportedArrayType,
                     "npz: array '" + name_ + "' has element type '" + descr +
                         "', which no program has; expected booleans or numbers",
                     {.file = file_});
  }
  Status ParseShape(Dims& dims) {
    if (!Eat('(')) return Malformed("shape is not a tuple");
    while (!Eat(')')) {
      std::string word = Word();
      bool digits =
          !word.empty() && word.size() <= 18 &&
          std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (!digits) return Malformed("dimension '" + word + "' is not a number");
      dims.push_back(std::stoll(word));
      Eat(',');
    }
    if (static_cast<int>(dims.size()) > kMaxRank || !CheckedElementCount(dims))
      return Malformed("the dimensions exceed the limit");
    return Ok();
  }

  std::string_view text_;
  std::string name_;
  const std::string& file_;
  size_t at_ = 0;
};

Result<Header> ReadHeader(std::string_view data, std::string_view name, const std::string& file) {
  auto malformed = [&](const char* what) {
    return MakeError(ErrorCode::kMalformedNpz, "npz: array '" + std::string(name) + "' " + what,
                     {.file = file});
  };
  if (data.size() < 12 || data.substr(0, 6) != "\x93NUMPY")
    return malformed("does not begin with the bytes of a .npy file");
  auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(data[i])); };
  size_t version = byte(6);
  if (version < 1 || version > 3) return malformed("has an unknown .npy version");
  size_t size = byte(8) | byte(9) << 8, begin = 10;
  if (version >= 2) {
    size |= byte(10) << 16 | byte(11) << 24;
    begin = 12;
  }
  if (data.size() - begin < size) return malformed("ends inside its header");
  TOK_TRY(Header header, HeaderParser(data.substr(begin, size), name, file).Parse());
  header.data = begin + size;
  return header;
}

void SwapBytes(std::vector<std::byte>& data, size_t width) {
  for (size_t i = 0; i + width <= data.size(); i += width)
    std::reverse(data.begin() + static_cast<ptrdiff_t>(i),
                 data.begin() + static_cast<ptrdiff_t>(i + width));
}

// Converts column-major to row-major order.
std::vector<std::byte> FromFortran(const std::vector<std::byte>& data, const Dims& dims,
                                   size_t width) {
  std::vector<std::byte> out(data.size());
  Dims strides(dims.size()), index(dims.size(), 0);
  int64_t stride = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    strides[i] = stride;
    stride *= dims[i];
  }
  int64_t from = 0;
  for (size_t to = 0; to < data.size(); to += width) {
    std::memcpy(&out[to], &data[static_cast<size_t>(from) * width], width);
    for (size_t i = dims.size(); i-- > 0;) {
      from += strides[i];
      if (++index[i] < dims[i]) break;
      from -= strides[i] * dims[i];
      index[i] = 0;
    }
  }
  return out;
}

// Foreign byte order, Fortran order and preds other than 0 and 1 are normalized in a copy;
// everything else is a window of the archive.
Result<Literal> ReadNpy(const ZipEntry& entry, const std::string& file) {
  TOK_TRY(Header header, ReadHeader(entry.data.text(), entry.name, file));
  Shape shape = Shape::Array(header.type->type, header.dims);
  auto size = static_cast<size_t>(shape.ByteSize());
  if (entry.data.size() - header.data != size)
    return MakeError(ErrorCode::kMalformedNpz,
                     "npz: array '" + entry.name + "' is " + ToString(shape) + ", which takes " +
                         std::to_string(size) + " bytes, but has " +
                         std::to_string(entry.data.size() - header.data),
                     {.file = file});
  Bytes data = entry.data.Window(header.data, size);
  bool pred = header.type->type == ElementType::kPred;
  if (!pred && !header.fortran && !(header.big_endian && header.type->swap > 1))
    return Literal::Array(std::move(shape), std::move(data));

  std::vector<std::byte> owned(data.data(), data.data() + size);
  if (header.big_endian) SwapBytes(owned, static_cast<size_t>(header.type->swap));
  if (header.fortran)
    owned = FromFortran(owned, header.dims, static_cast<size_t>(BytesOf(header.type->type)));
  if (pred)
    for (std::byte& b : owned) b = std::byte{b != std::byte{0}};
  return Literal::Array(std::move(shape), Bytes::FromVector(std::move(owned)));
}

// Version 1.0. The header is padded with spaces so that the elements start at a multiple of 64
// bytes, as in files of NumPy.
std::string NpyHeader(const Shape& shape) {
  std::string_view type;
  for (const NpyType& row : kTypes)
    if (row.type == shape.type() && type.empty()) type = row.name;
  std::string dims;
  for (int64_t dim : shape.dims()) dims += std::to_string(dim) + ", ";
  if (shape.rank() > 1) dims.resize(dims.size() - 2);
  if (shape.rank() == 1) dims.resize(dims.size() - 1);
  std::string dict = "{'descr': '" + std::string(BytesOf(shape.type()) == 1 ? "|" : "<") +
                     std::string(type) + "', 'fortran_order': False, 'shape': (" + dims + "), }";
  dict.append((64 - (10 + dict.size() + 1) % 64) % 64, ' ');
  dict += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dict.size() & 0xff);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

}  // namespace

const Literal* NpzFile::Find(std::string_view name) const {
  for (const auto& [key, literal] : arrays)
    if (key == name) return &literal;
  return nullptr;
}

Result<NpzFile> ReadNpz(const Bytes& bytes, const std::string& path) {
  TOK_TRY(std::vector<ZipEntry> entries, ReadZip(bytes, path));
  NpzFile file{path, {}};
  for (const ZipEntry& entry : entries) {
    TOK_TRY(Literal literal, ReadNpy(entry, path));
    std::string name = entry.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    file.arrays.emplace_back(std::move(name), std::move(literal));
  }
  return file;
}

std::string WriteNpz(const std::vector<std::pair<std::string, Literal>>& arrays) {
  ZipWriter zip;
  for (const auto& [name, literal] : arrays) {
    Literal carrier = ToCarrier(literal);
    std::string expanded;
    std::string_view body = carrier.data().text();
    auto size = static_cast<size_t>(carrier.shape().ByteSize());
    if (carrier.is_splat()) {
      expanded.reserve(size);
      while (expanded.size() < size) expanded += body;
      body = expanded;
    }
    zip.Add(name + ".npy", NpyHeader(carrier.shape()), body.substr(0, size));
  }
  return std::move(zip).Finish();
}

ElementType CarrierOf(ElementType type) {
  for (const NpyType& row : kTypes)
    if (row.type == type) return type;
  return BytesOf(type) == 1 ? ElementType::kU8 : ElementType::kU16;
}

Result<Literal> FromCarrier(const Literal& stored, const Shape& shape, const std::string& name,
                            const std::string& file) {
  ElementType carrier = CarrierOf(shape.type());
  Shape expected = Shape::Array(carrier, shape.dims());
  if (!CompatibleWithDynamic(stored.shape(), expected)) {
    std::string note = carrier == shape.type() ? "" : " (as " + ToString(expected) + ")";
    return MakeError(ErrorCode::kArrayMismatch,
                     "npz: array '" + name + "' is " + ToString(stored.shape()) +
                         ", but the program has " + ToString(shape.WithoutLayout()) + note,
                     {.file = file});
  }
  int bits = InfoOf(shape.type()).bits;
  if (bits < 8 && carrier != shape.type()) {
    for (std::byte b : stored.data().span())
      if (std::to_integer<int>(b) >> bits != 0)
        return MakeError(ErrorCode::kArrayMismatch,
                         "npz: array '" + name + "' has the value " +
                             std::to_string(std::to_integer<int>(b)) + ", which does not fit the " +
                             std::to_string(bits) + " bits of " +
                             std::string(HloName(shape.type())),
                         {.file = file});
  }
  Shape typed = Shape::Array(shape.type(), stored.shape().dims());
  if (shape.quant() != nullptr) typed = typed.WithQuant(*shape.quant());
  return stored.WithShape(std::move(typed));
}

Literal ToCarrier(const Literal& literal) {
  return literal.WithShape(Shape::Array(CarrierOf(literal.type()), literal.shape().dims()));
}

}  // namespace tokamak
