// Loads object files into memory. One reservation holds all sections of a file, so that 32-bit
// offsets between them suffice.

#include <cmath>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/Object/ObjectFile.h>

#include "backend/cpu/codegen.h"
#include "backend/cpu/scratch.h"

namespace tokamak::cpu {
namespace {

Error LoadError(llvm::Error error) {
  return MakeError(ErrorCode::kCodeGeneration, "llvm: " + llvm::toString(std::move(error)));
}

size_t RoundUp(size_t bytes, size_t to) {
  return (bytes + to - 1) / to * to;
}

// Code first, then read-only data, then the rest; each starts on a page.
class Pages final : public llvm::RuntimeDyld::MemoryManager {
 public:
  ~Pages() override {
    if (base_ != nullptr) munmap(base_, size_);
  }
  bool failed() const { return base_ == nullptr; }

  bool needsToReserveAllocationSpace() override { return true; }
  void reserveAllocationSpace(uintptr_t code, llvm::Align, uintptr_t constants, llvm::Align,
                              uintptr_t variables, llvm::Align) override {
    auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    uintptr_t wanted[] = {code, constants, variables};
    size_t at = 0;
    for (size_t i = 0; i < 3; ++i) {
      parts_[i] = {at, at, at + RoundUp(wanted[i] + kSlack, page)};
      at = parts_[i].end;
    }
    void* got = mmap(nullptr, at, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) return;
    base_ = static_cast<uint8_t*>(got);
    size_ = at;
  }
  uint8_t* allocateCodeSection(uintptr_t size, unsigned alignment, unsigned,
                               llvm::StringRef) override {
    return Take(parts_[0], size, alignment);
  }
  uint8_t* allocateDataSection(uintptr_t size, unsigned alignment, unsigned, llvm::StringRef,
                               bool is_read_only) override {
    return Take(parts_[is_read_only ? 1 : 2], size, alignment);
  }
  void registerEHFrames(uint8_t*, uint64_t, size_t) override {}
  void deregisterEHFrames() override {}
  bool finalizeMemory(std::string*) override {
    if (base_ == nullptr) return true;
    size_t code = parts_[0].end, constants = parts_[1].end - parts_[1].begin;
    bool ok = mprotect(base_, code, PROT_READ | PROT_EXEC) == 0 &&
              mprotect(base_ + parts_[1].begin, constants, PROT_READ) == 0;
    if (!ok) return true;
    __builtin___clear_cache(reinterpret_cast<char*>(base_), reinterpret_cast<char*>(base_ + code));
    return false;
  }

 private:
  static constexpr size_t kSlack = 1024;  // bytes for alignment
  struct Part {
    size_t begin = 0, at = 0, end = 0;
  };
  uint8_t* Take(Part& part, size_t size, size_t alignment) {
    if (base_ == nullptr) return nullptr;
    size_t at = RoundUp(part.at, std::max<size_t>(alignment, 1));
    if (at + size > part.end) return nullptr;
    part.at = at + size;
    return base_ + at;
  }

  uint8_t* base_ = nullptr;
  size_t size_ = 0;
  Part parts_[3];
};

// External symbols that code may reference. LLVM calls fmaxf for a select of 16-bit floats that it
// recognizes as a maximum, if the processor has no such instruction.
uint64_t AddressOf(llvm::StringRef name) {
  using OfTwo = float (*)(float, float);
  if (name == "fmaxf") return reinterpret_cast<uintptr_t>(OfTwo{&std::fmax});
  if (name == "fminf") return reinterpret_cast<uintptr_t>(OfTwo{&std::fmin});
  if (name == "memcpy") return reinterpret_cast<uintptr_t>(&std::memcpy);
  if (name == "memmove") return reinterpret_cast<uintptr_t>(&std::memmove);
  if (name == "memset") return reinterpret_cast<uintptr_t>(&std::memset);
  if (name == kScratchSymbol) return reinterpret_cast<uintptr_t>(&TakeScratch);
  return 0;
}

class Resolver final : public llvm::LegacyJITSymbolResolver {
 public:
  llvm::JITSymbol findSymbol(const std::string& name) override {
    return {AddressOf(name), llvm::JITSymbolFlags::Exported};
  }
  llvm::JITSymbol findSymbolInLogicalDylib(const std::string&) override { return nullptr; }
};

Status CheckSymbols(const llvm::object::ObjectFile& file) {
  for (const llvm::object::SymbolRef& symbol : file.symbols()) {
    llvm::Expected<uint32_t> flags = symbol.getFlags();
    if (!flags) return LoadError(flags.takeError());
    if ((*flags & llvm::object::BasicSymbolRef::SF_Undefined) == 0) continue;
    llvm::Expected<llvm::StringRef> name = symbol.getName();
    if (!name) return LoadError(name.takeError());
    if (!name->empty() && AddressOf(*name) == 0)
      return MakeError(ErrorCode::kCodeGeneration,
                       "generated code calls " + name->str() + ", which nothing defines");
  }
  return Ok();
}

class MappedCode final : public LoadedCode {
 public:
  Status Load(std::string_view object, size_t functions) {
    llvm::MemoryBufferRef bytes(llvm::StringRef(object.data(), object.size()), "kernels");
    auto file = llvm::object::ObjectFile::createObjectFile(bytes);
    if (!file) return LoadError(file.takeError());
    TOK_RETURN_IF_ERROR(CheckSymbols(**file));
    Resolver resolver;
    llvm::RuntimeDyld linker(pages_, resolver);
    linker.loadObject(**file);
    if (pages_.failed()) return NoMemory();
    linker.resolveRelocations();
    if (linker.hasError())
      return MakeError(ErrorCode::kCodeGeneration, "llvm: " + linker.getErrorString().str());
    if (pages_.finalizeMemory(nullptr)) return NoMemory();
    for (size_t i = 0; i < functions; ++i) {
      uint64_t address = linker.getSymbol("k" + std::to_string(i)).getAddress();
      if (address == 0)
        return MakeError(ErrorCode::kCodeGeneration,
                         "an object file has no kernel " + std::to_string(i));
      functions_.push_back(reinterpret_cast<KernelFn>(address));
    }
    return Ok();
  }

 private:
  static Error NoMemory() {
    return MakeError(ErrorCode::kCodeMemory, "no memory for generated code");
  }
  Pages pages_;
};

}  // namespace

Result<std::shared_ptr<const LoadedCode>> LoadObject(std::string_view object, size_t functions) {
  auto code = std::make_shared<MappedCode>();
  TOK_RETURN_IF_ERROR(code->Load(object, functions));
  return std::shared_ptr<const LoadedCode>(std::move(code));
}

}  // namespace tokamak::cpu
