#include "runtime/disk_cache.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "support/digest.h"

namespace tokamak {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void WriteFile(const std::string& path, const std::string& data) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << data;
}

class DiskCaches : public testing::Test {
 protected:
  DiskCaches() {
    char name[] = "/tmp/tokamak-cache-test-XXXXXX";
    dir_ = mkdtemp(name);
  }
  ~DiskCaches() override { std::filesystem::remove_all(dir_); }
  std::string dir_;
};

TEST_F(DiskCaches, KeepsWhatIsPut) {
  DiskCache cache(dir_ + "/inner/folder", 1 << 20);
  EXPECT_FALSE(cache.Get("text", "abc"));
  cache.Put("text", "abc", "hello");
  EXPECT_EQ(cache.Get("text", "abc"), "hello");
  cache.Put("text", "abc", "other");
  EXPECT_EQ(cache.Get("text", "abc"), "other");
  cache.Put("plan", "abc", "of another kind");
  EXPECT_EQ(cache.Get("text", "abc"), "other");
  EXPECT_EQ(cache.Get("plan", "abc"), "of another kind");
  std::string bytes("\0\xff\n", 3);
  cache.Put("text", bytes, "");
  EXPECT_EQ(cache.Get("text", bytes), "");
  struct stat info {};
  ASSERT_EQ(stat((dir_ + "/inner/folder").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

// An entry of one key must never be returned for another.
TEST_F(DiskCaches, ACopiedEntryIsNone) {
  DiskCache cache(dir_, 1 << 20);
  cache.Put("text", "abc", "hello");
  cache.Put("text", "abd", "world");
  std::filesystem::copy_file(cache.PathOf("text", "abc"), cache.PathOf("text", "abd"),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_FALSE(cache.Get("text", "abd"));
  EXPECT_EQ(cache.Get("text", "abc"), "hello");
  std::filesystem::copy_file(cache.PathOf("text", "abc"), cache.PathOf("plan", "abc"));
  EXPECT_FALSE(cache.Get("plan", "abc"));
}

TEST_F(DiskCaches, AnEntryOfAnotherBuildIsNone) {
  DiskCache cache(dir_, 1 << 20);
  std::string old_key = CacheKey().Add("build 1").Add("kernel").bytes();
  std::string new_key = CacheKey().Add("build 2").Add("kernel").bytes();
  cache.Put("text", old_key, "hello");
  EXPECT_FALSE(cache.Get("text", new_key));
  std::filesystem::copy_file(cache.PathOf("text", old_key), cache.PathOf("text", new_key));
  EXPECT_FALSE(cache.Get("text", new_key));
  // An entry of a build with another format.
  std::string data = ReadFile(cache.PathOf("text", old_key));
  std::string body = data.substr(0, data.size() - Digester::kBytes);
  body[8] = '1';
  WriteFile(cache.PathOf("text", old_key), body + DigestOf(body));
  EXPECT_FALSE(cache.Get("text", old_key));
}

TEST_F(DiskCaches, AnyFlippedBitIsFound) {
  DiskCache cache(dir_, 1 << 20);
  cache.Put("text", "the key", "the payload");
  std::string path = cache.PathOf("text", "the key"), data = ReadFile(path);
  for (size_t bit = 0; bit < data.size() * 8; ++bit) {
    std::string flipped = data;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    WriteFile(path, flipped);
    EXPECT_FALSE(cache.Get("text", "the key")) << bit;
  }
  WriteFile(path, data);
  EXPECT_EQ(cache.Get("text", "the key"), "the payload");
}

TEST_F(DiskCaches, ACutOrLongerEntryIsNone) {
  DiskCache cache(dir_, 1 << 20);
  cache.Put("text", "abc", "hello");
  std::string path = cache.PathOf("text", "abc"), data = ReadFile(path);
  for (size_t size = 0; size < data.size(); ++size) {
    WriteFile(path, data.substr(0, size));
    EXPECT_FALSE(cache.Get("text", "abc")) << size;
  }
  WriteFile(path, data + "x");
  EXPECT_FALSE(cache.Get("text", "abc"));
}

TEST_F(DiskCaches, StaysBounded) {
  DiskCache cache(dir_, 10000);
  auto key = [](int i) { return "key" + std::to_string(i); };
  for (int i = 0; i < 100; ++i) cache.Put("text", key(i), std::string(1000, 'x'));
  int kept = 0;
  for (int i = 0; i < 100; ++i) kept += cache.Get("text", key(i)) ? 1 : 0;
  EXPECT_GT(kept, 3);
  EXPECT_LT(kept, 11);
  EXPECT_TRUE(cache.Get("text", key(99)));
}

TEST_F(DiskCaches, FilesThatAProcessLeftBehindGo) {
  std::string left = dir_ + "/text-0.tok.part1.1", young = dir_ + "/text-0.tok.part2.1";
  WriteFile(left, "x");
  WriteFile(young, "x");
  std::filesystem::last_write_time(
      left, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  DiskCache cache(dir_, 1 << 20);
  cache.Put("text", "abc", "hello");
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(young));
}

TEST_F(DiskCaches, AFolderThatOthersMayWriteIsNotUsed) {
  chmod(dir_.c_str(), 0777);
  DiskCache cache(dir_, 1 << 20);
  EXPECT_FALSE(cache.IsUsable());
  cache.Put("text", "abc", "hello");
  EXPECT_FALSE(cache.Get("text", "abc"));
}

// A folder of another user: root gives one away, other users try a folder of root.
TEST_F(DiskCaches, AFolderOfSomebodyElseIsNotUsed) {
  std::string dir = "/usr";
  if (geteuid() == 0) {
    dir = dir_;
    ASSERT_EQ(chown(dir.c_str(), 65534, 65534), 0);
  }
  DiskCache cache(dir, 1 << 20);
  EXPECT_FALSE(cache.IsUsable());
  cache.Put("text", "abc", "hello");
  EXPECT_FALSE(cache.Get("text", "abc"));
}

TEST_F(DiskCaches, AnEntryThatOthersMayHaveWrittenIsNone) {
  DiskCache cache(dir_, 1 << 20);
  cache.Put("text", "abc", "hello");
  std::string path = cache.PathOf("text", "abc");
  chmod(path.c_str(), 0666);
  EXPECT_FALSE(cache.Get("text", "abc"));
  chmod(path.c_str(), 0600);
  EXPECT_TRUE(cache.Get("text", "abc"));
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
    EXPECT_FALSE(cache.Get("text", "abc"));
  }
}

// It does not block either: reading a pipe would never end.
TEST_F(DiskCaches, OnlyRegularFilesAreCached) {
  DiskCache cache(dir_, 1 << 20);
  cache.Put("text", "abc", "hello");
  std::string path = cache.PathOf("text", "abc"), there = dir_ + "/there";
  std::filesystem::rename(path, there);
  std::filesystem::create_symlink(there, path);
  EXPECT_FALSE(cache.Get("text", "abc"));
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(cache.Get("text", "abc"));
}

TEST(CacheKey, DependsOnEveryPart) {
  CacheKey key = CacheKey().Add("x").Add("y");
  EXPECT_EQ(key.Digest().size(), 32u);
  EXPECT_EQ(key.bytes(), CacheKey().Add("x").Add("y").bytes());
  EXPECT_NE(key.bytes(), CacheKey().Add("xy").Add("").bytes());
  EXPECT_NE(key.bytes(), CacheKey().Add("y").Add("x").bytes());
  EXPECT_NE(key.Digest(), CacheKey().Add("y").Add("x").Digest());
}

}  // namespace
}  // namespace tokamak
