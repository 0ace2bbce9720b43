#include "text/hlo_origins_out.h"

#include <string_view>

#include "text/hlo_values.h"

namespace tokamak {
namespace {

// Frames with more than a file and a line are printed as tables.
bool IsInline(const Frame& frame) {
  return frame.caller == FrameId::kNone && frame.function.empty();
}

}  // namespace

void HloOriginWriter::Collect(std::span<Computation* const> computations) {
  auto collect = [&](OriginId origins) {
    for (const Origin* origin : table_.Of(origins))
      if (!IsInline(table_.frame(origin->frame))) AddFrame(origin->frame);
  };
  for (const Computation* computation : computations) {
    collect(computation->origins);
    for (const Instr* instr : computation->Instrs()) collect(instr->origins());
  }
}

// Callers get lower numbers.
void HloOriginWriter::AddFrame(FrameId id) {
  std::vector<FrameId> chain;
  for (; id != FrameId::kNone && !frame_ids_.contains(id); id = table_.frame(id).caller)
    chain.push_back(id);
  for (size_t i = chain.size(); i-- > 0;) {
    frames_.push_back(chain[i]);
    frame_ids_.emplace(chain[i], static_cast<int64_t>(frames_.size()));
  }
}

void HloOriginWriter::AppendTables(std::string& out) const {
  if (frames_.empty()) return;
  std::vector<std::string_view> files, functions;
  std::unordered_map<std::string_view, size_t> file_ids, function_ids;
  auto intern = [](auto& table, auto& ids, std::string_view text) {
    auto [it, is_new] = ids.try_emplace(text, table.size() + 1);
    if (is_new) table.push_back(text);
    return it->second;
  };
  std::string locations, stack;
  for (size_t i = 0; i < frames_.size(); ++i) {
    const Frame& frame = table_.frame(frames_[i]);
    std::string number = std::to_string(i + 1);
    int64_t parent = frame.caller == FrameId::kNone ? 0 : frame_ids_.at(frame.caller);
    locations +=
        number + " {file_name_id=" + std::to_string(intern(files, file_ids, frame.file)) +
        " function_name_id=" + std::to_string(intern(functions, function_ids, frame.function)) +
        " line=" + std::to_string(frame.line) + " end_line=" + std::to_string(frame.end_line) +
        " column=" + std::to_string(frame.column) +
        " end_column=" + std::to_string(frame.end_column) + "}\n";
    stack += number + " {file_location_id=" + number +
             " parent_frame_id=" + std::to_string(parent + 1) + "}\n";
  }
  auto print = [&](std::string_view title, const std::vector<std::string_view>& table) {
    out.append(title) += '\n';
    for (size_t i = 0; i < table.size(); ++i) {
      out += std::to_string(i + 1) + " ";
      AppendQuoted(out, table[i]);
      out += '\n';
    }
  };
  out += '\n';
  print("FileNames", files);
  out += '\n';
  print("FunctionNames", functions);
  out += "\nFileLocations\n" + locations + "\nStackFrames\n" + stack;
}

void HloOriginWriter::AppendMetadata(std::string& out, const Origin& origin) const {
  out += '{';
  std::string_view space;
  auto text = [&](std::string_view name, const std::string& value) {
    if (value.empty()) return;
    out.append(space).append(name) += '=';
    AppendQuoted(out, value);
    space = " ";
  };
  auto number = [&](std::string_view name, int64_t value) {
    if (value == 0) return;
    out.append(space).append(name) += '=';
    AppendInt(out, value);
    space = " ";
  };
  text("op_type", origin.op_type);
  text("op_name", origin.op_name);
  const Frame& frame = table_.frame(origin.frame);
  if (IsInline(frame)) {
    text("source_file", frame.file);
    number("source_line", frame.line);
    number("source_end_line", frame.end_line);
    number("source_column", frame.column);
    number("source_end_column", frame.end_column);
  } else {
    number("stack_frame_id", frame_ids_.at(origin.frame));
  }
  if (!origin.other.empty()) out.append(space) += origin.other;
  out += '}';
}

void HloOriginWriter::Append(std::string& out, OriginId origins) const {
  if (origins == OriginId::kNone) return;
  std::vector<const Origin*> list = table_.Of(origins);
  out += list.size() == 1 ? ", metadata=" : ", origins={";
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += ", ";
    AppendMetadata(out, *list[i]);
  }
  if (list.size() != 1) out += '}';
}

}  // namespace tokamak
