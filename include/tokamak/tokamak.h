// Tokamak for C++ programs: read or build a program, compile it, run it. docs/cpp.md tells more.
//
//   auto module = tokamak::Module::FromFile("model.mlir");
//   if (!module.ok()) return Fail(module.error());
//   auto program = tokamak::Compile(*module, tokamak::Target::kCpu, {});
//   if (!program.ok()) return Fail(program.error());
//   auto x = tokamak::Buffer::From<float>({1, 2, 3, 4}, {2, 2});
//   if (!x.ok()) return Fail(x.error());
//   auto results = program->Run(*x);
//
// Errors are values: nothing here throws but std::bad_alloc, nothing ends the process. All of it is
// inline and stands on the C functions of libtokamak.so, so that a program may be compiled with
// another compiler or C++ library than Tokamak was.
#pragma once

#include <tokamak/builder.h>
#include <tokamak/program.h>
