#include "driver/report/page.h"

#include <nlohmann/json.hpp>

#include "driver/report/page_files.h"
#include "support/check.h"
#include "support/json_text.h"

namespace tokamak {
namespace {

using nlohmann::json;

std::string EscapedHtml(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

// JSON inside a <script> element. No `<` is left, so no name can end the element.
std::string EscapedJson(const json& data) {
  std::string text = JsonText(data), escaped;
  escaped.reserve(text.size());
  for (char c : text) {
    if (c == '<') {
      escaped += "\\u003c";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string_view FileNamed(std::string_view name) {
  for (const PageFile& file : PageFiles())
    if (file.name == name) return file.text;
  TOK_UNREACHABLE("a template names no file of its folder");
}

// A page is frame.html with the scripts of its own file.
struct PageText {
  std::string_view scripts;  // the file with them
  const std::string& title;
  const json& data;
};

std::string Expanded(std::string_view text, const PageText& page);

// The text that `{{name}}` stands for.
std::string TextOf(std::string_view name, const PageText& page) {
  if (name == "title") return EscapedHtml(page.title);
  if (name == "report") return EscapedJson(page.data);
  if (name == "scripts") return Expanded(FileNamed(page.scripts), page);
  return std::string(FileNamed(name));
}

std::string Expanded(std::string_view text, const PageText& page) {
  std::string expanded;
  for (size_t open = text.find("{{"); open != std::string_view::npos; open = text.find("{{")) {
    size_t close = text.find("}}", open);
    expanded += text.substr(0, open);
    expanded += TextOf(text.substr(open + 2, close - open - 2), page);
    text.remove_prefix(close + 2);
  }
  return expanded.append(text);
}

}  // namespace

json WithPageData(const CompileReport& report, json data, const PageOptions& options) {
  if (!report.why_interpreted().empty()) return data;
  data["program"] = report.module().name();
  data["graph"] = GraphOf(report);
  data["memory"] = MemoryOf(report);
  data["forms"] = KernelFormsOf(report);
  data["codes"] = KernelCodesOf(report, options);
  data["resources"] = ResourcesOf(report);
  data["alternatives"] = AlternativesOf(report);
  data["profile"] = ProfileOf(report, options, data["codes"]);
  data["sources"] = SourcesOf(data["graph"]["lines"], report.module().file);
  return data;
}

std::string PageOf(const std::string& title, const json& data) {
  return PageFrom("page.html", title, data);
}

std::string PageFrom(std::string_view file, const std::string& title, const json& data) {
  return Expanded(FileNamed("frame.html"), {file, title, data});
}

}  // namespace tokamak
