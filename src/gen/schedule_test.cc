#include "gen/schedule.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(Schedule, TextIsReadBack) {
  Schedule plain, full;
  full = {.kind = GeneratorKind::kContract,
          .tile_rows = 128,
          .tile_columns = 96,
          .tile_depth = 16,
          .inner_rows = 64,
          .inner_columns = 32,
          .threads = 192,
          .vector = 4,
          .unroll = 2,
          .stages = 3,
          .split_k = 5,
          .tiles_per_task = 7,
          .group = 6,
          .staging = Staging::kMemory};
  EXPECT_EQ(ToString(plain), "contract staging=shared");
  EXPECT_EQ(ToString(full),
            "contract tile=128x96x16 inner=64x32 threads=192 vector=4 unroll=2 stages=3 split_k=5 "
            "tiles_per_task=7 group=6 staging=memory");
  for (const Schedule& schedule : {plain, full}) {
    Result<Schedule> read = ParseSchedule(ToString(schedule));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read.value(), schedule);
  }
}

TEST(Schedule, FieldsMayBeInAnyOrder) {
  Result<Schedule> read = ParseSchedule(" contract  staging=memory tile=8x4x2 ");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(ToString(read.value()), "contract tile=8x4x2 staging=memory");
}

TEST(Schedule, EveryFieldIsPartOfTheHash) {
  std::vector<Schedule> all(14);
  int64_t Schedule::*numbers[] = {
      &Schedule::tile_rows,  &Schedule::tile_columns,   &Schedule::tile_depth,
      &Schedule::inner_rows, &Schedule::inner_columns,  &Schedule::threads,
      &Schedule::vector,     &Schedule::unroll,         &Schedule::stages,
      &Schedule::split_k,    &Schedule::tiles_per_task, &Schedule::group};
  for (size_t i = 0; i < std::size(numbers); ++i) all[i].*numbers[i] = 2;
  all[12].staging = Staging::kMemory;
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < all.size(); ++j) {
      EXPECT_EQ(HashOf(all[i]) == HashOf(all[j]), i == j) << i << " " << j;
      EXPECT_EQ(all[i] == all[j], i == j) << i << " " << j;
    }
}

TEST(Schedule, ErrorsNameTheField) {
  struct Case {
    const char *text, *message;
  };
  for (const Case& of : {
           Case{"", "'' does not begin with a generator"},
           Case{"tile=1x1x1", "does not begin with a generator"},
           Case{"contract tile", "'tile' is not FIELD=VALUE"},
           Case{"contract tile=1x2", "tile: expected 3 numbers"},
           Case{"contract threads=1x2", "threads: expected 1 number"},
           Case{"contract tile=1x2x0", "tile: '0' is not a number from 1 to 1048576"},
           Case{"contract tile=1xx3", "tile: '' is not a number"},
           Case{"contract stages=two", "stages: 'two' is not a number"},
           Case{"contract stages=2 stages=2", "the field 'stages' is repeated"},
           Case{"contract stage=2", "there is no field 'stage'; did you mean 'stages'?"},
           Case{"contract staging=disk", "'disk' is none of memory, registers, shared and bulk"},
       }) {
    Result<Schedule> read = ParseSchedule(of.text);
    ASSERT_FALSE(read.ok()) << of.text;
    EXPECT_EQ(read.error().code, ErrorCode::kOptionValue);
    EXPECT_NE(read.error().message.find(of.message), std::string::npos) << read.error().message;
  }
}

}  // namespace
}  // namespace tokamak
