// Compiles a hot function once per x86-64 level and picks the best at load time.
#pragma once

// Sanitizers start after the resolvers that pick a version have run, so they get one version.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(TAMIS_SANITIZED)
#define TAMIS_MULTIVERSION \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TAMIS_MULTIVERSION
#endif
