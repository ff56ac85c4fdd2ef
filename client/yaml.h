/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The doorway to libyaml, which is loaded when the first YAML text is met and not linked: an
 * embedder who has none needs none. YAML becomes JSON text; one document; anchors, aliases and tags
 * (but !!str) are refused, because a small text with them can stand for a huge one. Thread: any.
 */
#include <stddef.h>

struct hf__strbuf;
struct hf_status;

/* 0, -ENOMEM, HF_E_INVALID (line and reason), HF_E_UNAVAILABLE (libyaml is not there),
 * HF_E_TOO_LARGE (out's limit). */
int hf__yaml_to_json(const char *text, size_t n, struct hf__strbuf *out,
                     struct hf_status *reterr_status); /* one document */

/* number: of the document in the text, from 1; line: where it begins, from 1; json is borrowed. Not
 * 0 ends it, and is returned. */
typedef int (*hf__yaml_fn)(void *ctx, size_t number, size_t line, const char *json, size_t n,
                           struct hf_status *reterr_status);
/* Calls fn for each document in turn, "null" for an empty one. Errors as above, their message
 * begins with document and line. */
int hf__yaml_each(const char *text, size_t n, size_t max_json, hf__yaml_fn fn, void *ctx,
                  struct hf_status *reterr_status);
