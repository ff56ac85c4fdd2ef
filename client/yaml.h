/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Converts YAML of kubeconfig files and manifests to JSON. yaml_body.h converts the bodies of
 * requests, the audit policy and the encryption configuration. Anchors and aliases are refused,
 * because with them a small text can expand to a huge one; tags except !!str are refused, because
 * JSON has none. Thread: any.
 */
#include <stddef.h>

struct hf__strbuf;
struct hf_status;

/* Converts a text with one document and appends the JSON to `out`. Returns 0, -ENOMEM, HF_E_INVALID
 * (the message has the reason, and the line unless the reason concerns the whole text),
 * HF_E_UNAVAILABLE (libyaml cannot be loaded) or HF_E_TOO_LARGE (`out` is full). */
int hf__yaml_to_json(const char *text, size_t n, struct hf__strbuf *out,
                     struct hf_status *reterr_status);

/* Receives a document as JSON of n bytes (borrowed). number: the position of the document in the
 * text, from 1. line: the line where the document begins, from 1. A result other than 0 ends the
 * iteration. */
typedef int (*hf__yaml_fn)(void *ctx, size_t number, size_t line, const char *json, size_t n,
                           struct hf_status *reterr_status);
/* Calls fn for each document in order; an empty document is "null". max_json limits the JSON of one
 * document, in bytes. Returns 0, the result of fn, or an error of hf__yaml_to_json. A message about
 * an invalid document begins with its number and the line. */
int hf__yaml_each(const char *text, size_t n, size_t max_json, hf__yaml_fn fn, void *ctx,
                  struct hf_status *reterr_status);
