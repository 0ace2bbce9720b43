// Each process that has compiled a program lists the folder and writes the index of all rows there,
// under a temporary name that is then renamed. If two do so at the same time, the older list may be
// renamed last. So each lists the folder again after its own rename, and repeats if there are new
// rows: no new row is found after the last rename.

#include "driver/report/program_pages.h"

#include <chrono>
#include <dirent.h>
#include <map>
#include <mutex>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "driver/report/explain.h"
#include "driver/report/page.h"
#include "text/load.h"

namespace tokamak {
namespace {

using nlohmann::json;

constexpr std::string_view kRowSuffix = ".explain.json";
// Times that one program writes the index at most. Chosen: each time but the first needs another
// process that has added a row meanwhile, and that process writes the index, too.
constexpr int kMostIndexWrites = 8;

// The rows of a folder by file name. Rows never change, so each is read once per process.
class IndexRows {
 public:
  // Reads new rows; whether there were any.
  bool Read(const std::string& folder) {
    DIR* list = opendir(folder.c_str());
    if (list == nullptr) return false;
    bool is_new = false;
    while (const dirent* entry = readdir(list)) {
      std::string name = entry->d_name;
      if (name.ends_with(kRowSuffix) && !rows_.contains(name))
        is_new |= Add(name, folder + "/" + name);
    }
    closedir(list);
    return is_new;
  }

  json All() const {
    json all = json::array();
    for (const auto& [name, row] : rows_) all.push_back(row);
    return all;
  }

 private:
  bool Add(const std::string& name, const std::string& path) {
    Result<Bytes> bytes = ReadFileBytes(path);
    if (!bytes.ok()) return false;
    json row = json::parse(bytes.value().text(), nullptr, /*allow_exceptions=*/false);
    if (!row.is_object()) return false;
    row["files"] = name.substr(0, name.size() - kRowSuffix.size());
    rows_.emplace(name, std::move(row));
    return true;
  }

  std::map<std::string, json> rows_;
};

void WriteRow(const std::string& prefix, json row) {
  static std::mutex mutex;
  static std::map<std::string, IndexRows> rows_of;  // by folder
  std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  row["time"] = now.count();
  row["process"] = getpid();
  if (!WriteFileBytes(prefix + std::string(kRowSuffix), LineOfJson(row)).ok()) return;
  size_t slash = prefix.rfind('/');
  std::string folder = slash == std::string::npos ? "." : prefix.substr(0, slash);
  std::lock_guard lock(mutex);
  IndexRows& rows = rows_of[folder];
  for (int i = 0; i < kMostIndexWrites && rows.Read(folder); ++i) {
    std::string page = PageFrom("index.html", "Compiled programs", {{"programs", rows.All()}});
    if (!WriteFileBytes(folder + "/index.html", page).ok()) return;
  }
}

}  // namespace

void WriteProgramPage(const std::string& prefix,
                      const std::shared_ptr<const Compilation>& compilation, double compile_ms) {
  const Compilation& made = *compilation;
  json row = {{"name", made.module->name()},
              {"target", made.target.name},
              {"instructions", made.module->entry()->Instrs().size()},
              {"compile_ms", compile_ms}};
  if (!made.why_interpreted.empty()) row["interpreted"] = made.why_interpreted;
  Result<CompileReport> report = ReportOf(compilation);
  if (report.ok()) {
    const Totals& totals = report.value().totals;
    row["kernels"] = totals.kernels;
    row["other_steps"] = totals.library + totals.host + totals.copies;
    row["predicted_us"] = totals.us;
    row["temporary_bytes"] = totals.temporary_bytes;
  }
  ExplainRequest request;
  request.html = true;
  // On a GPU, a page with machine code would compile kernels a second time, for seconds.
  request.page.code = !made.target.is_gpu();
  bool has_page = false;
  if (report.ok()) {
    Result<std::string> page = Explained(std::move(report.value()), request, nullptr);
    has_page = page.ok() && WriteFileBytes(prefix + ".html", page.value()).ok();
  }
  row["has_page"] = has_page;
  WriteRow(prefix, std::move(row));
}

void WriteFailedProgram(const std::string& prefix, const std::string& name, const Error& error) {
  WriteRow(prefix, {{"name", name}, {"error", CodeText(error.code) + ": " + error.message}});
}

}  // namespace tokamak
