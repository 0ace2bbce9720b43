#pragma once

// TOK_SANITIZED: whether a sanitizer watches this build. It wants the address space for itself,
// and it reports crashes.

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
