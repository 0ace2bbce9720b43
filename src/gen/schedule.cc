#include "gen/schedule.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <vector>

#include "support/hash.h"
#include "support/near_names.h"

namespace tokamak {
namespace {

// The generators that use a number of a schedule: a bit each.
enum Users : unsigned {
  kCpuContract = 1,
  kGpuContract = 2 * kCpuContract,
  kCpuRows = 2 * kGpuContract,
  kGpuRows = 2 * kCpuRows,
  kCpuColumns = 2 * kGpuRows,
  kGpuColumns = 2 * kCpuColumns,
  kCpuLoop = 2 * kGpuColumns,
  kGpuLoop = 2 * kCpuLoop,
  kContract = kCpuContract | kGpuContract,
  kRows = kCpuRows | kGpuRows,
  kColumns = kCpuColumns | kGpuColumns,
  kLoop = kCpuLoop | kGpuLoop,
  kAll = kContract | kRows | kColumns | kLoop,
};

unsigned UserOf(GeneratorKind kind, bool is_gpu) {
  if (kind == GeneratorKind::kContract) return is_gpu ? kGpuContract : kCpuContract;
  if (kind == GeneratorKind::kRows) return is_gpu ? kGpuRows : kCpuRows;
  if (kind == GeneratorKind::kColumns) return is_gpu ? kGpuColumns : kCpuColumns;
  if (kind == GeneratorKind::kLoop) return is_gpu ? kGpuLoop : kCpuLoop;
  return 0;
}

struct ScheduleNumber {
  int64_t Schedule::*number = nullptr;
  unsigned users = 0;
};

// Numbers per field: the rows, columns and depth of a tile (structure of the text form).
constexpr size_t kNumbersOfField = 3;
constexpr std::string_view kNumberNames[kNumbersOfField] = {" rows", " columns", " depth"};

// A field of the text form. Entries behind its last number are null.
struct ScheduleField {
  std::string_view name;
  std::array<ScheduleNumber, kNumbersOfField> numbers;

  size_t count() const {
    return static_cast<size_t>(
        std::count_if(numbers.begin(), numbers.end(),
                      [](const ScheduleNumber& entry) { return entry.number != nullptr; }));
  }
};

// In the order in which ToString prints them.
constexpr ScheduleField kScheduleFields[] = {
    {"tile",
     {{{&Schedule::tile_rows, kContract | kRows | kLoop},
       {&Schedule::tile_columns, kContract | kColumns | kLoop},
       {&Schedule::tile_depth, kContract | kRows | kGpuColumns}}}},
    {"inner",
     {{{&Schedule::inner_rows, kContract}, {&Schedule::inner_columns, kContract | kColumns}}}},
    {"threads", {{{&Schedule::threads, kGpuContract | kGpuRows | kGpuColumns | kGpuLoop}}}},
    {"vector", {{{&Schedule::vector, kAll}}}},
    {"unroll", {{{&Schedule::unroll, kCpuContract | kRows | kColumns | kLoop}}}},
    {"stages", {{{&Schedule::stages, kGpuContract}}}},
    {"split_k", {{{&Schedule::split_k, kGpuContract}}}},
    {"tiles_per_task", {{{&Schedule::tiles_per_task, kCpuContract}}}},
    {"group", {{{&Schedule::group, kGpuContract}}}},
};
// In the order of Staging.
constexpr std::string_view kStagingNames[] = {"memory", "registers", "shared", "bulk"};
constexpr std::string_view kStagingField = "staging";

Error BadSchedule(const std::string& why) {
  return MakeError(ErrorCode::kOptionValue, "schedule: " + why);
}

// Splits at the separator, and drops empty parts if it is a space.
std::vector<std::string_view> SplitText(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t end = std::min(text.find(separator), text.size());
    if (end > 0 || separator != ' ') parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

Status ReadNumbers(const ScheduleField& field, std::string_view value, Schedule& schedule) {
  std::vector<std::string_view> parts = SplitText(value, 'x');
  if (parts.size() != field.count())
    return BadSchedule(std::string(field.name) + ": expected " + std::to_string(field.count()) +
                       (field.count() == 1 ? " number" : " numbers, such as 64x32"));
  for (size_t i = 0; i < field.count(); ++i) {
    int64_t number = 0;
    const char* end = parts[i].data() + parts[i].size();
    auto [stop, error] = std::from_chars(parts[i].data(), end, number);
    if (error != std::errc() || stop != end || number < 1 || number > kMaxScheduleNumber)
      return BadSchedule(std::string(field.name) + ": '" + ShownWord(parts[i]) +
                         "' is not a number from 1 to " + std::to_string(kMaxScheduleNumber));
    schedule.*field.numbers[i].number = number;
  }
  return Ok();
}

Status ReadStaging(std::string_view value, Schedule& schedule) {
  const auto* found = std::find(std::begin(kStagingNames), std::end(kStagingNames), value);
  if (found == std::end(kStagingNames))
    return BadSchedule("staging: " +
                       NoneOf(value, {std::begin(kStagingNames), std::end(kStagingNames)}));
  schedule.staging = static_cast<Staging>(found - std::begin(kStagingNames));
  return Ok();
}

Status ReadField(std::string_view name, std::string_view value, Schedule& schedule) {
  if (name == kStagingField) return ReadStaging(value, schedule);
  for (const ScheduleField& field : kScheduleFields)
    if (field.name == name) return ReadNumbers(field, value, schedule);
  std::vector<std::string_view> names = {kStagingField};
  for (const ScheduleField& field : kScheduleFields) names.push_back(field.name);
  return BadSchedule("there is no field '" + ShownWord(name) + "'" + DidYouMean(name, names));
}

}  // namespace

uint64_t HashOf(const Schedule& schedule) {
  Hasher hasher;
  hasher.Add(schedule.kind);
  for (const ScheduleField& field : kScheduleFields)
    for (size_t i = 0; i < field.count(); ++i) hasher.Add(schedule.*field.numbers[i].number);
  hasher.Add(schedule.staging);
  return hasher.digest();
}

std::string ToString(const Schedule& schedule) {
  std::string text(NameOf(schedule.kind));
  for (const ScheduleField& field : kScheduleFields) {
    std::string numbers;
    bool is_one = true;
    for (size_t i = 0; i < field.count(); ++i) {
      int64_t number = schedule.*field.numbers[i].number;
      numbers += (i == 0 ? "=" : "x") + std::to_string(number);
      is_one = is_one && number == 1;
    }
    if (!is_one) text += " " + std::string(field.name) + numbers;
  }
  text += " " + std::string(kStagingField) + "=";
  return text + std::string(kStagingNames[static_cast<size_t>(schedule.staging)]);
}

bool HasSchedules(GeneratorKind kind, bool is_gpu) {
  return UserOf(kind, is_gpu) != 0;
}

std::string WhyNotFields(const Schedule& schedule, bool is_gpu) {
  unsigned user = UserOf(schedule.kind, is_gpu);
  for (const ScheduleField& field : kScheduleFields)
    for (size_t i = 0; i < field.count(); ++i)
      if (auto [number, users] = field.numbers[i]; (users & user) == 0 && schedule.*number != 1)
        return std::string(field.name) + std::string(field.count() > 1 ? kNumberNames[i] : "") +
               ": 1 for " + std::string(NameOf(schedule.kind)) + " kernels of a " +
               (is_gpu ? "GPU" : "CPU");
  return "";
}

Result<Schedule> ParseSchedule(std::string_view text) {
  std::vector<std::string_view> words = SplitText(text, ' '), seen;
  std::optional<GeneratorKind> kind =
      words.empty() ? std::nullopt : GeneratorKindFromName(words[0]);
  if (!kind)
    return BadSchedule("'" + ShownWord(text) +
                       "' does not begin with a generator, such as contract");
  Schedule schedule{.kind = *kind};
  for (size_t i = 1; i < words.size(); ++i) {
    size_t equals = words[i].find('=');
    if (equals == std::string_view::npos)
      return BadSchedule("'" + ShownWord(words[i]) + "' is not FIELD=VALUE");
    std::string_view name = words[i].substr(0, equals);
    if (std::find(seen.begin(), seen.end(), name) != seen.end())
      return BadSchedule("the field '" + ShownWord(name) + "' is repeated");
    seen.push_back(name);
    TOK_RETURN_IF_ERROR(ReadField(name, words[i].substr(equals + 1), schedule));
  }
  return schedule;
}

}  // namespace tokamak
