// Locations. The name at the top of an op's location is its op_name; inside call sites, names are
// function names:
//   loc("jit(f)/add"(callsite("g"("model.py":3:4) at "f"("main.py":9:1))))
// is op_name "jit(f)/add" with the frame model.py:3:4 of g, called from
// main.py:9:1 of f.

#include "text/mlir_text.h"

namespace tokamak {

bool MlirTextReader::ParseOptionalLoc(OriginId& origins) {
  if (cursor_.Peek() != 'l' || !cursor_.StartsWith("loc(")) return true;
  cursor_.Advance(4);
  return ParseLoc(origins) && Expect(')');
}

bool MlirTextReader::ParseLoc(OriginId& origins) {
  if (!Enter()) return false;
  OriginTable& table = importer_.module().origins();
  frames_entered_ = 0;
  bool ok = true;
  char c = cursor_.Peek();
  if (c == '#') {
    TextPos pos = cursor_.Pos();
    const char* begin = cursor_.at();
    cursor_.Advance();
    cursor_.Name();
    std::string_view key(begin, static_cast<size_t>(cursor_.at() - begin));
    auto it = aliases_.find(key);
    if (it == aliases_.end())
      return FailAt(pos, ErrorCode::kMlirAlias, "no location is named " + std::string(key));
    Alias& alias = it->second;
    if (!alias.origins) {
      if (alias.state == 1)
        return FailAt(pos, ErrorCode::kMlirAlias, std::string(key) + " is defined by itself");
      alias.state = 1;
      MlirCursor::Mark mark = cursor_.Save();
      cursor_.Restore(alias.mark);
      OriginId read = OriginId::kNone;
      if (!ParseOptionalLoc(read)) return false;
      cursor_.Restore(mark);
      alias.origins = read;
      alias.state = 2;
    }
    origins = *alias.origins;
  } else if (cursor_.EatWord("unknown")) {
    origins = OriginId::kNone;
  } else if (cursor_.EatWord("fused")) {
    std::string_view metadata;
    if (cursor_.Peek() == '<' && !SkipBalanced('<', '>', metadata)) return false;
    if (!Expect('[')) return false;
    std::vector<OriginId> parts;
    do ok = ParseLoc(parts.emplace_back(OriginId::kNone));
    while (ok && cursor_.Eat(','));
    ok = ok && Expect(']');
    // Merged pairwise: a sequential merge of a long list would be quadratic.
    for (; parts.size() > 1; parts.resize((parts.size() + 1) / 2))
      for (size_t i = 0; i < parts.size(); i += 2)
        parts[i / 2] = i + 1 < parts.size() ? table.Merge(parts[i], parts[i + 1]) : parts[i];
    origins = parts[0];
  } else if (c == '"' || cursor_.StartsWith("callsite")) {
    Origin origin;
    MlirCursor::Mark mark = cursor_.Save();
    if (c == '"' && !ParseString(origin.op_name)) return false;
    if (c == '"' && cursor_.Peek() != ':') {
      // A name, optionally around another location.
      if (cursor_.Eat('(')) {
        if (cursor_.StartsWith("fused")) {
          OriginId inner = OriginId::kNone;
          ok = ParseLoc(inner);
          std::vector<const Origin*> parts = table.Of(inner);
          if (!parts.empty()) origin.frame = parts.front()->frame;
        } else {
          ok = ParseFrame(FrameId::kNone, origin.frame, {});
        }
        ok = ok && Expect(')');
      }
    } else {
      cursor_.Restore(mark);
      origin.op_name.clear();
      ok = ParseFrame(FrameId::kNone, origin.frame, {});
    }
    origins = table.Add(origin);
  } else {
    ok = Expected("a location");
  }
  Leave();
  return ok;
}

// "file":3:4, "file":3:4 to 5:6, "file":3:4 to :6
bool MlirTextReader::ParseFileRange(Frame& frame) {
  int64_t line = 0, column = 0, end_line = 0, end_column = 0;
  if (!Expect(':') || !ParseInt(line) || !Expect(':') || !ParseInt(column)) return false;
  if (cursor_.EatWord("to")) {
    end_line = line;
    if (cursor_.Peek() != ':' && !ParseInt(end_line)) return false;
    if (!Expect(':') || !ParseInt(end_column)) return false;
  }
  frame.line = static_cast<int32_t>(line);
  frame.column = static_cast<int32_t>(column);
  frame.end_line = static_cast<int32_t>(end_line);
  frame.end_column = static_cast<int32_t>(end_column);
  return true;
}

// The innermost frame of a location whose outermost caller is `caller`.
bool MlirTextReader::ParseFrame(FrameId caller, FrameId& frame, std::string_view function) {
  if (!Enter()) return false;
  OriginTable& table = importer_.module().origins();
  bool ok = true;
  char c = cursor_.Peek();
  frame = caller;
  if (c == '#') {
    const char* begin = cursor_.at();
    cursor_.Advance();
    cursor_.Name();
    ok = ParseFrameAlias({begin, static_cast<size_t>(cursor_.at() - begin)}, caller, frame,
                         function);
  } else if (c == '"') {
    std::string text;
    if (!ParseString(text)) return false;
    if (cursor_.Peek() == ':') {
      Frame entry;
      entry.file = std::move(text);
      entry.function = function;
      entry.caller = caller;
      ok = ParseFileRange(entry);
      frame = table.AddFrame(entry);
    } else if (cursor_.Eat('(')) {
      ok = ParseFrame(caller, frame, text) && Expect(')');
    }
  } else if (cursor_.EatWord("callsite")) {
    // The caller follows the callee in the text but must be parsed first.
    if (!Expect('(')) return false;
    MlirCursor::Mark callee = cursor_.Save();
    FrameId outer = caller;
    ok = SkipLoc() && cursor_.EatWord("at") && ParseFrame(caller, outer, {});
    MlirCursor::Mark end = cursor_.Save();
    cursor_.Restore(callee);
    ok = ok && ParseFrame(outer, frame, function);
    cursor_.Restore(end);
    if (!ok && !error_) ok = Expected("'at' in a call site");
    ok = ok && Expect(')');
  } else if (cursor_.EatWord("fused")) {
    std::string_view skipped;
    if (cursor_.Peek() == '<' && !SkipBalanced('<', '>', skipped)) return false;
    MlirCursor::Mark begin = cursor_.Save();
    ok = SkipBalanced('[', ']', skipped);
    MlirCursor::Mark end = cursor_.Save();
    cursor_.Restore(begin);
    // A fused location is represented by its first one.
    ok = ok && Expect('[') && ParseFrame(caller, frame, function);
    cursor_.Restore(end);
  } else if (!cursor_.EatWord("unknown")) {
    ok = Expected("a location");
  }
  Leave();
  return ok;
}

bool MlirTextReader::SkipLoc() {
  std::string_view skipped;
  char c = cursor_.Peek();
  if (c == '#') {
    cursor_.Advance();
    cursor_.Name();
    return true;
  }
  if (c == '"') {
    std::string text;
    if (!ParseString(text)) return false;
    if (cursor_.Peek() == ':') {
      Frame frame;
      return ParseFileRange(frame);
    }
    return cursor_.Peek() != '(' || SkipBalanced('(', ')', skipped);
  }
  std::string_view word = cursor_.Word();
  if (word == "unknown") return true;
  if (word == "callsite") return SkipBalanced('(', ')', skipped);
  if (word != "fused") return Expected("a location");
  if (cursor_.Peek() == '<' && !SkipBalanced('<', '>', skipped)) return false;
  return SkipBalanced('[', ']', skipped);
}

bool MlirTextReader::ParseFrameAlias(std::string_view name, FrameId caller, FrameId& frame,
                                     std::string_view function) {
  auto key = std::pair(name, caller);
  if (function.empty()) {
    auto known = frames_.find(key);
    if (known != frames_.end()) {
      frame = known->second;
      return true;
    }
  }
  // Nested call sites, two each: 60 lines could expand to 2^60 frames.
  if (++frames_entered_ > kMaxLocationFrames) return true;
  auto it = aliases_.find(name);
  if (it == aliases_.end())
    return Fail(ErrorCode::kMlirAlias, "no location is named " + std::string(name));
  MlirCursor::Mark mark = cursor_.Save();
  cursor_.Restore(it->second.mark);
  bool ok = Expect("loc") && Expect('(') && ParseFrame(caller, frame, function) && Expect(')');
  if (ok) cursor_.Restore(mark);
  if (ok && function.empty()) frames_.emplace(key, frame);
  return ok;
}

}  // namespace tokamak
