#include "runtime/disk_cache.h"

#include <cstdlib>
#include <fstream>
#include <sys/stat.h>

#include <gtest/gtest.h>

namespace tokamak {
namespace {

std::string FreshDir() {
  char name[] = "/tmp/tokamak-cache-test-XXXXXX";
  return std::string(mkdtemp(name));
}

TEST(DiskCache, KeepsWhatIsPut) {
  DiskCache cache(FreshDir() + "/inner/folder", 1 << 20);
  EXPECT_FALSE(cache.Get("abc"));
  cache.Put("abc", "hello");
  EXPECT_EQ(cache.Get("abc"), "hello");
  cache.Put("abc", "other");
  EXPECT_EQ(cache.Get("abc"), "other");
}

TEST(DiskCache, ADamagedEntryIsNone) {
  std::string dir = FreshDir();
  DiskCache cache(dir, 1 << 20);
  cache.Put("abc", "hello");
  {
    std::ofstream file(dir + "/abc.tok", std::ios::app);
    file << "x";
  }
  EXPECT_FALSE(cache.Get("abc"));
}

TEST(DiskCache, StaysBounded) {
  std::string dir = FreshDir();
  DiskCache cache(dir, 10000);
  for (int i = 0; i < 100; ++i) cache.Put("key" + std::to_string(i), std::string(1000, 'x'));
  int kept = 0;
  for (int i = 0; i < 100; ++i) kept += cache.Get("key" + std::to_string(i)) ? 1 : 0;
  EXPECT_GT(kept, 3);
  EXPECT_LT(kept, 11);
  EXPECT_TRUE(cache.Get("key99"));
}

TEST(DiskCache, AFolderThatOthersMayWriteIsNotUsed) {
  std::string dir = FreshDir();
  chmod(dir.c_str(), 0777);
  DiskCache cache(dir, 1 << 20);
  EXPECT_FALSE(cache.IsUsable());
  cache.Put("abc", "hello");
  EXPECT_FALSE(cache.Get("abc"));
}

TEST(CacheKey, DependsOnEveryPart) {
  std::string a = CacheKey().Add("x").Add("y").Text();
  EXPECT_EQ(a.size(), 32u);
  EXPECT_EQ(a, CacheKey().Add("x").Add("y").Text());
  EXPECT_NE(a, CacheKey().Add("xy").Add("").Text());
  EXPECT_NE(a, CacheKey().Add("y").Add("x").Text());
}

}  // namespace
}  // namespace tokamak
