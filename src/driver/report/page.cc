#include "driver/report/page.h"

#include <nlohmann/json.hpp>

#include "driver/report/page_files.h"
#include "support/check.h"

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
  std::string text = data.dump(-1, ' ', false, json::error_handler_t::replace), escaped;
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

// The text that `{{name}}` in page.html stands for.
std::string TextOf(std::string_view name, const std::string& title, const json& data) {
  if (name == "title") return EscapedHtml(title);
  if (name == "report") return EscapedJson(data);
  return std::string(FileNamed(name));
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
  std::string_view rest = FileNamed(file);
  std::string page;
  for (size_t open = rest.find("{{"); open != std::string_view::npos; open = rest.find("{{")) {
    size_t close = rest.find("}}", open);
    page += rest.substr(0, open);
    page += TextOf(rest.substr(open + 2, close - open - 2), title, data);
    rest.remove_prefix(close + 2);
  }
  return page.append(rest);
}

}  // namespace tokamak
