/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The beginning of a body that could not be read, as Kubernetes' messages show it. Pure. Thread:
 * any. */
#include <stddef.h>

#define HFD_BODY_SUMMARY_MAX 72 /* bytes, with the NUL */

/* Writes the first 30 bytes: of a body that begins with '{' as text, of any other as hexadecimal
 * digits. A longer body gets " ..." at the end; an empty one is "<empty>". The text may end within
 * a UTF-8 character. */
void hfd_body_summary(const char *body, size_t n, char out[HFD_BODY_SUMMARY_MAX]);
