// Tests the plugin through its function table, as JAX calls it.

#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "driver/compile/event_sink.h"
#include "driver/compile/host_calls.h"
#include "pjrt/compile_options.h"
#include "pjrt/proto.h"
#include "pjrt/test_client.h"
#include "support/error.h"

namespace tokamak {
namespace {

using test::Await;
using test::Client;
using test::Delete;
using test::Destroy;
using test::Fresh;
using test::Get;
using test::IsDeleted;
using test::PointerOf;
using test::Ready;

constexpr const char* kTwice = R"(module @twice {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = stablehlo.add %x, %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
})";

constexpr const char* kDonated = R"(module @donated {
  func.func @main(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<4xf32>) -> tensor<4xf32> {
    %z = stablehlo.add %x, %y : tensor<4xf32>
    return %z : tensor<4xf32>
  }
})";

// A loop that is still running when the test continues.
constexpr const char* kSlow = R"(module @slow {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %end = stablehlo.constant dense<30000> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<4xf32>
     cond {
      %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %n = stablehlo.add %i, %one : tensor<i32>
      %w = stablehlo.cosine %v : tensor<4xf32>
      stablehlo.return %n, %w : tensor<i32>, tensor<4xf32>
    }
    return %r#1 : tensor<4xf32>
  }
})";

constexpr const char* kHost = R"(module @host {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = stablehlo.custom_call @test_host_fn(%x) {mhlo.backend_config = {id = 7 : i64, name = "a"}, api_version = 4 : i32} : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
})";

std::string CodeOf(const std::string& text) {
  return text.substr(0, 14);  // "error[TK6102]:"
}

TEST(Plugin, EverySlotIsFilled) {
  const PJRT_Api* api = GetPjrtApi();
  EXPECT_EQ(api->struct_size, 1144u);
  EXPECT_EQ(api->pjrt_api_version.minor_version, 114);
  auto* slots = reinterpret_cast<void* const*>(reinterpret_cast<const char*>(api) + 40);
  for (size_t i = 0; i < (api->struct_size - 40) / 8; ++i) EXPECT_NE(slots[i], nullptr) << i;
}

TEST(Plugin, AShortStructIsAnError) {
  PJRT_Client_Create_Args args{};
  args.struct_size = 16;
  EXPECT_EQ(CodeOf(TOK_CALL(PJRT_Client_Create, args)), "error[TK6113]:");
  EXPECT_EQ(CodeOf(test::TextOf(GetPjrtApi()->PJRT_Client_Create(nullptr))), "error[TK6113]:");
}

TEST(Plugin, OlderCallersKnowFewerFields) {
  Client client;
  struct {
    PJRT_Device_MemoryStats_Args args{};
    char behind[16] = {};
  } memory;
  std::memset(memory.behind, 0x55, sizeof memory.behind);
  memory.args.peak_allocated_bytes = 77;
  memory.args.struct_size = 185;  // JAX 0.10
  memory.args.device = client.device[0];
  EXPECT_EQ(TOK_CALL(PJRT_Device_MemoryStats, memory.args), "");
  EXPECT_TRUE(memory.args.peak_bytes_in_use_is_set);
  EXPECT_EQ(memory.args.peak_allocated_bytes, 77);  // not modified
  EXPECT_EQ(memory.behind[0], 0x55);
}

TEST(Plugin, RunsAProgram) {
  Client client;
  PJRT_LoadedExecutable* twice = client.Compile(kTwice);
  ASSERT_NE(twice, nullptr) << client.error;
  PJRT_Buffer* x = client.Put({1, 2, 3, 4});
  for (int i = 0; i < 3; ++i) {
    std::vector<PJRT_Buffer*> y = client.Execute(twice, {x}, 1);
    ASSERT_EQ(y.size(), 1u) << client.error;
    EXPECT_EQ(Get(y[0]), (std::vector<float>{2, 4, 6, 8}));
    Destroy(y[0]);
  }
  Destroy(x);
  Destroy(twice);
}

// Reports are valid JSON even for a program whose name is not UTF-8, and on a worker thread, where
// no caller would catch an exception.
TEST(Plugin, NamesMayBeAnyBytes) {
  std::string said;
  SetEventSink([](const char* json, void* user) { *static_cast<std::string*>(user) += json; },
               &said);
  Client client;
  std::string text(kSlow);
  text.replace(text.find("@slow"), 5, "@\"a\\FFb\"");
  PJRT_LoadedExecutable* named = client.Compile(text);
  ASSERT_NE(named, nullptr) << client.error;
  PJRT_Buffer* x = client.Put({1, 2, 3, 4});
  std::vector<PJRT_Buffer*> y = client.Execute(named, {x}, 1);
  ASSERT_EQ(y.size(), 1u) << client.error;
  EXPECT_EQ(Ready(y[0]), "");
  client.Stop();
  SetEventSink(nullptr, nullptr);
  EXPECT_NE(said.find("\"name\":\"a\xEF\xBF\xBD"
                      "b\""),
            std::string::npos)
      << said;
  // The host does not time runs on a device.
  const char* device = std::getenv("TOKAMAK_DEVICE");
  if (device == nullptr || std::string_view(device) == "cpu") {
    EXPECT_NE(said.find("first_run"), std::string::npos) << said;
  }
  Destroy(y[0]);
  Destroy(x);
  Destroy(named);
}

TEST(Plugin, WrongArgumentsAreErrors) {
  Client client;
  PJRT_LoadedExecutable* twice = client.Compile(kTwice);
  PJRT_Buffer* x = client.Put({1, 2, 3});
  EXPECT_TRUE(client.Execute(twice, {x}, 1).empty());
  EXPECT_EQ(CodeOf(client.error), "error[TK6104]:") << client.error;
  EXPECT_TRUE(client.Execute(twice, {x, x}, 1).empty());
  EXPECT_EQ(CodeOf(client.error), "error[TK6104]:") << client.error;
  Delete(x);
  EXPECT_TRUE(IsDeleted(x));
  PJRT_Buffer* y = client.Put({1, 2, 3, 4});
  Delete(y);
  EXPECT_TRUE(client.Execute(twice, {y}, 1).empty());
  EXPECT_EQ(CodeOf(client.error), "error[TK6102]:") << client.error;
  EXPECT_EQ(Ready(y), "");
  Destroy(x);
  Destroy(y);
  Destroy(twice);
}

TEST(Plugin, BadProgramsAreErrors) {
  Client client;
  EXPECT_EQ(client.Compile("module { func.func @main() { foo } }"), nullptr);
  EXPECT_NE(client.error.find("error[TK1"), std::string::npos) << client.error;
  EXPECT_EQ(client.Compile(kTwice, "\x1a\x7f"), nullptr);
  EXPECT_EQ(CodeOf(client.error), "error[TK6105]:") << client.error;
  std::string option, value, row;
  PutBytes(value, 1, "x");
  PutBytes(row, 1, "tokamak_strikt");
  PutBytes(row, 2, value);
  PutBytes(option, 7, row);
  EXPECT_EQ(client.Compile(kTwice, option), nullptr);
  EXPECT_NE(client.error.find("did you mean 'tokamak_strict'"), std::string::npos) << client.error;
}

TEST(Plugin, DonationTakesTheMemoryOver) {
  Client client;
  PJRT_LoadedExecutable* program = client.Compile(kDonated);
  ASSERT_NE(program, nullptr) << client.error;
  PJRT_Buffer* x = client.Put({1, 2, 3, 4});
  PJRT_Buffer* y = client.Put({1, 1, 1, 1});
  uintptr_t at = PointerOf(x);
  std::vector<PJRT_Buffer*> z = client.Execute(program, {x, y}, 1);
  ASSERT_EQ(z.size(), 1u) << client.error;
  EXPECT_TRUE(IsDeleted(x));
  EXPECT_FALSE(IsDeleted(y));
  EXPECT_EQ(PointerOf(z[0]), at);
  EXPECT_EQ(Get(z[0]), (std::vector<float>{2, 3, 4, 5}));
  // Not donated if the caller excludes it.
  std::vector<PJRT_Buffer*> kept = client.Execute(program, {y, z[0]}, 1, {0});
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_FALSE(IsDeleted(y));
  EXPECT_EQ(Get(kept[0]), (std::vector<float>{3, 4, 5, 6}));
  // The same buffer donated and read: rejected, and no buffer is consumed.
  EXPECT_TRUE(client.Execute(program, {kept[0], kept[0]}, 1).empty());
  EXPECT_NE(client.error.find("argument 0 is also read as argument 1"), std::string::npos)
      << client.error;
  EXPECT_FALSE(IsDeleted(kept[0]));
  for (PJRT_Buffer* buffer : {x, y, z[0], kept[0]}) Destroy(buffer);
  Destroy(program);
}

TEST(Plugin, ExecuteDoesNotWait) {
  Client client;
  PJRT_LoadedExecutable* slow = client.Compile(kSlow);
  ASSERT_NE(slow, nullptr) << client.error;
  PJRT_Buffer* x = client.Put({1, 2, 3, 4});
  std::vector<PJRT_Buffer*> chain = {x};
  for (int i = 0; i < 3; ++i) {
    std::vector<PJRT_Buffer*> next = client.Execute(slow, {chain.back()}, 1);
    ASSERT_EQ(next.size(), 1u) << client.error;
    chain.push_back(next[0]);
  }
  auto ready = Fresh<PJRT_Buffer_ReadyEvent_Args>();
  ready.buffer = chain.back();
  TOK_CALL(PJRT_Buffer_ReadyEvent, ready);
  auto is_ready = Fresh<PJRT_Event_IsReady_Args>();
  is_ready.event = ready.event;
  TOK_CALL(PJRT_Event_IsReady, is_ready);
  EXPECT_FALSE(is_ready.is_ready);
  Delete(chain[1]);  // pending work is not affected
  EXPECT_EQ(Await(ready.event), "");
  for (float value : Get(chain.back())) EXPECT_NEAR(value, 0.739085f, 1e-5);
  for (PJRT_Buffer* buffer : chain) Destroy(buffer);
  Destroy(slow);
}

TEST(Plugin, DestroyingTheClientEndsItsWork) {
  auto client = std::make_unique<Client>();
  PJRT_LoadedExecutable* slow = client->Compile(kSlow);
  PJRT_Buffer* x = client->Put({1, 2, 3, 4});
  std::vector<PJRT_Buffer*> outputs;
  for (int i = 0; i < 5; ++i) outputs.push_back(client->Execute(slow, {x}, 1).at(0));
  client->Stop();
  for (PJRT_Buffer* output : outputs) {
    std::string text = Ready(output);
    EXPECT_TRUE(text.empty() || CodeOf(text) == "error[TK6103]:") << text;
    Destroy(output);
  }
  EXPECT_TRUE(client->Execute(slow, {x}, 1).empty());
  EXPECT_EQ(CodeOf(client->error), "error[TK6103]:");
  Destroy(x);
  Destroy(slow);
}

std::string AddSeven(const HostCallFrame& frame, void* fn, void* user) {
  EXPECT_EQ(frame.attributes, R"({"id":7,"name":"a"})");
  if (fn != nullptr) return "this one always fails";
  ++*static_cast<int*>(user);
  auto* from = static_cast<const float*>(frame.inputs[0].data);
  auto* to = static_cast<float*>(frame.outputs[0].data);
  for (int i = 0; i < 4; ++i) to[i] = from[i] + 7;
  return "";
}

TEST(Plugin, CallsFunctionsOfTheHost) {
  Client client;
  int calls = 0;
  PJRT_LoadedExecutable* host = client.Compile(kHost);
  ASSERT_NE(host, nullptr) << client.error;
  PJRT_Buffer* x = client.Put({1, 2, 3, 4});
  auto run = [&](std::string* error) {
    std::vector<PJRT_Buffer*> y = client.Execute(host, {x}, 1);
    std::vector<float> values = Get(y.at(0), error);
    Destroy(y[0]);
    return values;
  };
  std::string error;
  run(&error);
  EXPECT_NE(error.find("TK5001"), std::string::npos) << error;  // no function is registered
  RegisterHostCall("test_host_fn", AddSeven, nullptr, &calls);
  EXPECT_EQ(run(&error), (std::vector<float>{8, 9, 10, 11})) << error;
  EXPECT_EQ(calls, 1);
  RegisterHostCall("test_host_fn", AddSeven, &calls, &calls);
  run(&error);
  EXPECT_EQ(CodeOf(error), "error[TK6112]:") << error;
  EXPECT_NE(error.find("this one always fails"), std::string::npos);
  UnregisterHostCall("test_host_fn");
  Destroy(x);
  Destroy(host);
}

std::string RunOut(const HostCallFrame&, void*, void*) {
  throw std::bad_alloc();
}

// Running out of memory in a host function is an error of the run, and the end of the process does
// not wait for the function.
TEST(PluginDeathTest, AFunctionOfTheHostThatThrowsIsOver) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        alarm(60);
        Client client;
        RegisterHostCall("test_host_fn", RunOut, nullptr, nullptr);
        PJRT_LoadedExecutable* host = client.Compile(kHost);
        std::string error;
        Get(client.Execute(host, {client.Put({1, 2, 3, 4})}, 1).at(0), &error);
        StopHostCalls();
        _exit(CodeOf(error) == "error[TK5002]:" ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Plugin, AnErrorPoisonsWhatDependsOnIt) {
  Client client;
  PJRT_LoadedExecutable* twice = client.Compile(kTwice);
  auto args = Fresh<PJRT_Client_CreateErrorBuffer_Args>();
  int64_t dim = 4;
  args.client = client.client;
  args.error_code = PJRT_Error_Code_DATA_LOSS;
  args.error_message = "lost";
  args.error_message_size = 4;
  args.shape_dims = &dim;
  args.shape_num_dims = 1;
  args.shape_element_type = PJRT_Buffer_Type_F32;
  EXPECT_EQ(TOK_CALL(PJRT_Client_CreateErrorBuffer, args), "");
  PJRT_Buffer* y = client.Execute(twice, {args.buffer}, 1).at(0);
  PJRT_Buffer* z = client.Execute(twice, {y}, 1).at(0);
  EXPECT_EQ(Ready(z), "lost");
  PJRT_Buffer* x = client.Put({1, 2, 3, 4});  // the client remains usable
  PJRT_Buffer* fine = client.Execute(twice, {x}, 1).at(0);
  EXPECT_EQ(Get(fine), (std::vector<float>{2, 4, 6, 8}));
  for (PJRT_Buffer* buffer : {args.buffer, y, z, x, fine}) Destroy(buffer);
  Destroy(twice);
}

TEST(Plugin, AlignedArraysOfTheHostAreShared) {
  if (std::getenv("TOKAMAK_DEVICE") != nullptr) GTEST_SKIP() << "a device has memory of its own";
  Client client;
  alignas(64) float values[1024] = {};  // smaller arrays are copied
  int64_t dim = 1024;
  auto args = Fresh<PJRT_Client_BufferFromHostBuffer_Args>();
  args.client = client.client;
  args.data = values;
  args.type = PJRT_Buffer_Type_F32;
  args.dims = &dim;
  args.num_dims = 1;
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableZeroCopy;
  args.device = client.device[0];
  EXPECT_EQ(TOK_CALL(PJRT_Client_BufferFromHostBuffer, args), "");
  EXPECT_EQ(PointerOf(args.buffer), reinterpret_cast<uintptr_t>(values));
  auto is_ready = Fresh<PJRT_Event_IsReady_Args>();
  is_ready.event = args.done_with_host_buffer;
  TOK_CALL(PJRT_Event_IsReady, is_ready);
  EXPECT_FALSE(is_ready.is_ready);
  Destroy(args.buffer);
  EXPECT_EQ(Await(args.done_with_host_buffer), "");
}

TEST(Plugin, StridedArraysAreCopied) {
  Client client;
  float values[6] = {0, 1, 2, 3, 4, 5};
  int64_t dims[2] = {3, 2}, strides[2] = {4, 12};  // the transpose of 2 x 3
  auto args = Fresh<PJRT_Client_BufferFromHostBuffer_Args>();
  args.client = client.client;
  args.data = values;
  args.type = PJRT_Buffer_Type_F32;
  args.dims = dims;
  args.num_dims = 2;
  args.byte_strides = strides;
  args.num_byte_strides = 2;
  args.device = client.device[0];
  EXPECT_EQ(TOK_CALL(PJRT_Client_BufferFromHostBuffer, args), "");
  Await(args.done_with_host_buffer);
  EXPECT_EQ(Get(args.buffer), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  Destroy(args.buffer);
}

TEST(Plugin, SerializedProgramsComeBack) {
  Client client;
  PJRT_LoadedExecutable* twice = client.Compile(kTwice);
  auto get = Fresh<PJRT_LoadedExecutable_GetExecutable_Args>();
  get.loaded_executable = twice;
  TOK_CALL(PJRT_LoadedExecutable_GetExecutable, get);
  auto serialize = Fresh<PJRT_Executable_Serialize_Args>();
  serialize.executable = get.executable;
  EXPECT_EQ(TOK_CALL(PJRT_Executable_Serialize, serialize), "");
  std::string bytes(serialize.serialized_bytes, serialize.serialized_bytes_size);
  serialize.serialized_executable_deleter(serialize.serialized_executable);
  auto load = Fresh<PJRT_Executable_DeserializeAndLoad_Args>();
  load.client = client.client;
  load.serialized_executable = bytes.data();
  load.serialized_executable_size = bytes.size();
  EXPECT_EQ(TOK_CALL(PJRT_Executable_DeserializeAndLoad, load), "");
  PJRT_Buffer* x = client.Put({1, 2, 3, 4});
  PJRT_Buffer* y = client.Execute(load.loaded_executable, {x}, 1).at(0);
  EXPECT_EQ(Get(y), (std::vector<float>{2, 4, 6, 8}));
  bytes[bytes.size() / 2] ^= 1;
  load.serialized_executable = bytes.data();
  EXPECT_EQ(CodeOf(TOK_CALL(PJRT_Executable_DeserializeAndLoad, load)), "error[TK6111]:");
  Destroy(x);
  Destroy(y);
  Destroy(load.loaded_executable);
  auto destroy = Fresh<PJRT_Executable_Destroy_Args>();
  destroy.executable = get.executable;
  TOK_CALL(PJRT_Executable_Destroy, destroy);
  Destroy(twice);
}

// A sharded program for two devices, without a manual computation.
constexpr const char* kSharded = R"(module @sharded {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
    %y = stablehlo.add %x, %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
})";

std::string OptionsFor(int64_t partitions, const std::vector<int64_t>& devices) {
  std::string build, options;
  PutInt(build, 4, 1);
  PutInt(build, 5, partitions);
  PutBytes(build, 9, WriteDeviceAssignment(1, partitions, devices));
  PutBytes(options, 3, build);
  return options;
}

TEST(Plugin, DevicesAndShardingsThatAreNotThere) {
  Client client(2);
  EXPECT_EQ(client.device.size(), 2u);
  EXPECT_EQ(client.Compile(kTwice, OptionsFor(1, {5})), nullptr);
  EXPECT_EQ(CodeOf(client.error), "error[TK6109]:") << client.error;
  EXPECT_EQ(client.Compile(kSharded, OptionsFor(2, {0, 1})), nullptr);
  EXPECT_EQ(CodeOf(client.error), "error[TK6108]:") << client.error;
  Client none(1000);
  EXPECT_EQ(CodeOf(none.error), "error[TK6107]:") << none.error;
}

TEST(Plugin, TransfersLargerThanTheBuffer) {
  Client client;
  EXPECT_EQ(client.Compile("module { func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
                           "return %x : tensor<?xf32> } }"),
            nullptr);
  EXPECT_EQ(CodeOf(client.error), "error[TK6116]:") << client.error;
  PJRT_Buffer* x = client.Put({1, 2, 3});
  float small[2];
  auto args = Fresh<PJRT_Buffer_ToHostBuffer_Args>();
  args.src = x;
  args.dst = small;
  args.dst_size = sizeof small;
  EXPECT_EQ(CodeOf(TOK_CALL(PJRT_Buffer_ToHostBuffer, args)), "error[TK6110]:");
  auto missing = Fresh<PJRT_Buffer_CopyRawToHostFuture_Args>();
  missing.buffer = x;
  EXPECT_EQ(CodeOf(TOK_CALL(PJRT_Buffer_CopyRawToHostFuture, missing)), "error[TK6114]:");
  Destroy(x);
}

TEST(CompileOptions, DeviceAssignmentsComeBack) {
  std::string build, options;
  PutInt(build, 4, 2);
  PutInt(build, 5, 3);
  PutBytes(build, 9, WriteDeviceAssignment(2, 3, {5, 4, 3, 2, 1, 0}));
  PutBytes(options, 3, build);
  Result<PjrtCompileOptions> read = ReadCompileOptions(options);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().num_replicas, 2);
  EXPECT_EQ(read.value().num_partitions, 3);
  EXPECT_EQ(read.value().devices, (std::vector<int64_t>{5, 4, 3, 2, 1, 0}));
}

TEST(CompileOptions, EffortComesBeforeWhatOneCallSays) {
  std::string options, build, row, held;
  PutBytes(held, 1, "max");
  PutBytes(row, 1, "tokamak_effort");
  PutBytes(row, 2, held);
  PutBytes(options, 7, row);
  PutVarint(build, 20 << 3 | ProtoReader::kFixed32);
  build.append("\x00\x00\x80\xbf", 4);  // -1
  PutBytes(options, 3, build);
  Result<PjrtCompileOptions> read = ReadCompileOptions(options);
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read.value().overrides.size(), 2u);
  EXPECT_EQ(read.value().overrides[0].first, "exec_time_optimization_effort");
  EXPECT_EQ(std::get<double>(read.value().overrides[0].second), -1);
  EXPECT_EQ(read.value().overrides[1].first, "tokamak_effort");
}

TEST(CompileOptions, AnyBytesAreReadOrRejected) {
  uint64_t state = 1;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes;
    for (int j = 0; j < 24; ++j) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      bytes += static_cast<char>(state >> 59 < 20 ? (state >> 33) % 64 : state >> 40);
    }
    Result<PjrtCompileOptions> read = ReadCompileOptions(bytes);
    if (!read.ok()) {
      EXPECT_EQ(read.error().code, ErrorCode::kCompileOptions);
    }
  }
}

}  // namespace
}  // namespace tokamak
