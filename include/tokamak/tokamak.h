// The C++ API of Tokamak: parse or build a program, compile it, run it. See docs/cpp.md.
//
//   auto module = tokamak::Module::FromFile("model.mlir");
//   if (!module.ok()) return Fail(module.error());
//   auto program = tokamak::Compile(*module, tokamak::Target::kCpu, {});
//   if (!program.ok()) return Fail(program.error());
//   auto x = tokamak::Buffer::From<float>({1, 2, 3, 4}, {2, 2});
//   if (!x.ok()) return Fail(x.error());
//   auto results = program->Run(*x);
//
// Errors are values: nothing throws except std::bad_alloc, nothing ends the process. Everything is
// inline code on top of the C functions of libtokamak.so, so that a program may be compiled with a
// different compiler or C++ library than Tokamak.
#pragma once

#include <tokamak/builder.h>
#include <tokamak/graph.h>
#include <tokamak/program.h>
