/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* HF__IS_SANITIZED: whether this is a build with a sanitizer that checks each block of memory. In
 * such a build no code may keep freed blocks for reuse, because the sanitizer would then not notice
 * a use after the free. */
#include <stdbool.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HF__IS_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
        __has_feature(memory_sanitizer)
#define HF__IS_SANITIZED true
#endif
#endif
#ifndef HF__IS_SANITIZED
#define HF__IS_SANITIZED false
#endif
