// Four threads that compile, put, execute, donate, delete and read at random through the ABI, on
// shared buffers. Values are checked; the sanitizers check the rest.
//
//   tok_pjrt_soak [--full]      1,000 executions, or 10,000

#include <cmath>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>

#include "pjrt/test_client.h"

namespace tokamak::test {
namespace {

constexpr int kThreads = 4;
constexpr int kWidth = 16;  // elements per buffer (chosen: small)

// x + y, y * 2 with x donated; a short and a long variant.
std::string ProgramText(int repetitions) {
  std::string body, value = "%s";
  for (int i = 0; i < repetitions; ++i) {
    std::string next = "%t" + std::to_string(i);
    body += "    " + next + " = stablehlo.abs " + value + " : tensor<16xf32>\n";
    value = next;
  }
  return "module @m" + std::to_string(repetitions) +
         " {\n"
         "  func.func @main(%x: tensor<16xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<16xf32>)"
         " -> (tensor<16xf32>, tensor<16xf32>) {\n"
         "    %s = stablehlo.add %x, %y : tensor<16xf32>\n" +
         body + "    %d = stablehlo.add %y, %y : tensor<16xf32>\n    return " + value +
         ", %d : tensor<16xf32>, tensor<16xf32>\n  }\n}\n";
}

// A buffer and the value of all its elements.
struct Known {
  PJRT_Buffer* buffer;
  float value;
};

class Soak {
 public:
  explicit Soak(int executions) : executions_(executions) {
    for (int repetitions : {0, 400}) programs_.push_back(client_.Compile(ProgramText(repetitions)));
  }

  int Run() {
    for (PJRT_LoadedExecutable* program : programs_)
      if (program == nullptr) return Fail("compile: " + client_.error);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) threads.emplace_back([this, t] { Work(t); });
    for (std::thread& thread : threads) thread.join();
    for (const Known& known : shared_) Destroy(known.buffer);
    for (PJRT_LoadedExecutable* program : programs_) Destroy(program);
    stopping_ = true;
    client_.Stop();
    if (failures_ > 0) return 1;
    std::printf("soak: %d executions, %d reads, %d of them of deleted buffers\n", executed_.load(),
                reads_.load(), deleted_.load());
    return 0;
  }

 private:
  int Fail(const std::string& text) {
    std::fprintf(stderr, "soak: %s\n", text.c_str());
    ++failures_;
    return 1;
  }

  void Work(int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::vector<Known> own;
    while (executed_ < executions_ && failures_ == 0) {
      switch (random() % 8) {
        case 0:
          own.push_back(Make(static_cast<float>(random() % 100)));
          break;
        case 1:
          Share(own);
          break;
        case 2:
          DeleteShared(random);
          break;
        case 3:
          if (!own.empty()) Check(own.back());
          break;
        case 4:
          if (PJRT_LoadedExecutable* again = Recompile()) Destroy(again);
          break;
        default:
          Step(random, own);
      }
      while (own.size() > 8) {
        Destroy(own.front().buffer);
        own.erase(own.begin());
      }
    }
    for (const Known& known : own) Destroy(known.buffer);
  }

  Known Make(float value) {
    Client& client = client_;
    auto args = Fresh<PJRT_Client_BufferFromHostBuffer_Args>();
    std::vector<float> values(kWidth, value);
    int64_t dim = kWidth;
    args.client = client.client;
    args.data = values.data();
    args.type = PJRT_Buffer_Type_F32;
    args.dims = &dim;
    args.num_dims = 1;
    args.device = client.device[0];
    std::string error = TOK_CALL(PJRT_Client_BufferFromHostBuffer, args);
    if (!error.empty()) Fail("put: " + error);
    Await(args.done_with_host_buffer);
    return {args.buffer, value};
  }

  PJRT_LoadedExecutable* Recompile() {
    std::string text = ProgramText(0);
    PJRT_Program program{};
    program.struct_size = kStructSize<PJRT_Program>;
    program.code = text.data();
    program.code_size = text.size();
    program.format = "mlir";
    program.format_size = 4;
    auto args = Fresh<PJRT_Client_Compile_Args>();
    args.client = client_.client;
    args.program = &program;
    std::string error = TOK_CALL(PJRT_Client_Compile, args);
    if (!error.empty()) Fail("compile: " + error);
    return args.executable;
  }

  void Share(std::vector<Known>& own) {
    if (own.size() < 2) return;
    std::lock_guard<std::mutex> lock(mutex_);
    shared_.push_back(own.front());
    own.erase(own.begin());
    if (shared_.size() <= 16) return;
    Destroy(shared_.front().buffer);
    shared_.erase(shared_.begin());
  }

  // Another thread may be about to use it, or may have donated it.
  void DeleteShared(std::mt19937& random) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!shared_.empty()) Delete(shared_[random() % shared_.size()].buffer);
  }

  // The handles live while the lock is held; their contents may be deleted at any time.
  void Step(std::mt19937& random, std::vector<Known>& own) {
    Known x = Make(1), y = Make(2);
    bool with_shared = random() % 2 == 0;
    std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
    Known other = y;
    if (with_shared) {
      lock.lock();
      if (!shared_.empty()) other = shared_[random() % shared_.size()];
    }
    if (!own.empty() && random() % 2 == 0) {
      std::swap(x, own.back());
    }
    Execute(random, x, random() % 8 == 0 ? x : other, own);
    Destroy(x.buffer);
    Destroy(y.buffer);
  }

  void Execute(std::mt19937& random, Known x, Known y, std::vector<Known>& own) {
    PJRT_Buffer* inputs[] = {x.buffer, y.buffer};
    PJRT_Buffer* outputs[2] = {};
    PJRT_Buffer* const* argument_list = inputs;
    PJRT_Buffer** output_list = outputs;
    PJRT_Event* done = nullptr;
    auto options = Fresh<PJRT_ExecuteOptions>();
    auto args = Fresh<PJRT_LoadedExecutable_Execute_Args>();
    args.executable = programs_[random() % programs_.size()];
    args.options = &options;
    args.argument_lists = &argument_list;
    args.num_devices = 1;
    args.num_args = 2;
    args.output_lists = &output_list;
    args.device_complete_events = &done;
    std::string error = TOK_CALL(PJRT_LoadedExecutable_Execute, args);
    ++executed_;
    if (!error.empty()) {
      bool rejected = x.buffer == y.buffer && error.find("is also read") != std::string::npos;
      if (!rejected && error.find("TK6102") == std::string::npos) Fail("execute: " + error);
      ++deleted_;
      return;
    }
    if (x.buffer == y.buffer) Fail("a buffer was donated and read");
    if (!IsDeleted(x.buffer)) Fail("a donated buffer is not deleted");
    own.push_back({outputs[0], x.value + y.value});
    own.push_back({outputs[1], y.value * 2});
    if (random() % 4 == 0)
      Await(done);
    else
      Forget(done);
    if (random() % 4 == 0) Check(own[own.size() - 2]);
  }

  // Adds a callback that may still be pending when the event is destroyed.
  void Forget(PJRT_Event* event) {
    auto on_ready = Fresh<PJRT_Event_OnReady_Args>();
    on_ready.event = event;
    on_ready.user_arg = this;
    on_ready.callback = [](PJRT_Error* error, void* user) {
      if (error == nullptr) return;
      auto* soak = static_cast<Soak*>(user);
      std::string text = TextOf(error);
      // Work that had not run by then gets the error TK6103.
      if (!soak->stopping_ || text.find("TK6103") == std::string::npos) soak->Fail("done: " + text);
    };
    TOK_CALL(PJRT_Event_OnReady, on_ready);
    auto destroy = Fresh<PJRT_Event_Destroy_Args>();
    destroy.event = event;
    TOK_CALL(PJRT_Event_Destroy, destroy);
  }

  void Check(const Known& known) {
    std::string error;
    std::vector<float> values = Get(known.buffer, &error);
    ++reads_;
    if (!error.empty()) {
      if (error.find("TK6102") == std::string::npos) Fail("read: " + error);
      return;
    }
    for (float value : values)
      if (value != known.value && std::isfinite(known.value))
        Fail("a value is " + std::to_string(value) + ", not " + std::to_string(known.value));
  }

  int executions_;
  Client client_;
  std::vector<PJRT_LoadedExecutable*> programs_;
  std::mutex mutex_;
  std::vector<Known> shared_;
  std::atomic<int> executed_{0}, reads_{0}, deleted_{0}, failures_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace
}  // namespace tokamak::test

int main(int argc, char** argv) {
  bool full = argc > 1 && std::strcmp(argv[1], "--full") == 0;
  return tokamak::test::Soak(full ? 10000 : 1000).Run();
}
