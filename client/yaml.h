/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Converts YAML to JSON. The only user of libyaml, which is loaded for each conversion and not
 * linked: a program that reads no YAML does not need it. Anchors, aliases and tags (but !!str) are
 * refused, because with them a small text can stand for a huge one. Thread: any.
 */
#include <stddef.h>

struct hf__strbuf;
struct hf_status;

/* Converts a text with one document and appends the JSON to `out`. 0, -ENOMEM, HF_E_INVALID (the
 * message has line and reason), HF_E_UNAVAILABLE (libyaml cannot be loaded) or HF_E_TOO_LARGE (the
 * limit of `out`). */
int hf__yaml_to_json(const char *text, size_t n, struct hf__strbuf *out,
                     struct hf_status *reterr_status);

/* Gets a document. number: its place in the text, from 1; line: where it begins, from 1; json is
 * borrowed. A result other than 0 ends the iteration. */
typedef int (*hf__yaml_fn)(void *ctx, size_t number, size_t line, const char *json, size_t n,
                           struct hf_status *reterr_status);
/* Calls fn for each document in turn, with "null" for an empty one. max_json limits the JSON of one
 * document, in bytes. 0, the result of fn, or an error as above, whose message begins with document
 * and line. */
int hf__yaml_each(const char *text, size_t n, size_t max_json, hf__yaml_fn fn, void *ctx,
                  struct hf_status *reterr_status);
