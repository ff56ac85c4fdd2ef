/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Appends texts of unknown length to a message, which is a string with a limit. A message that is
 * cut says more than none. Thread: owner only. */
#include <stddef.h>

struct hf__strbuf;

/*
 * Appends the n bytes of text if they are no more than max, and the limit of s has room for them.
 * Otherwise appends as many whole characters as leave room for "...", and then "...". If even that
 * does not fit, it is cut too. A text that does not fit is no error of s.
 */
void hf__strbuf_add_cut(struct hf__strbuf *s, const char *text, size_t n, size_t max);
/* The same for a text that ends with a NUL, with no other limit than that of s. */
void hf__strbuf_puts_cut(struct hf__strbuf *s, const char *text);
