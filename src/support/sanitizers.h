#pragma once

// TOK_SANITIZED is 1 in builds with an address or thread sanitizer. Sanitizers reserve much of the
// address space and install their own crash handlers, so some features are disabled there.

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // g++
#define TOK_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)  // clang
#define TOK_SANITIZED 1
#endif
#endif
#ifndef TOK_SANITIZED
#define TOK_SANITIZED 0
#endif
