/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Converts YAML to JSON as sigs.k8s.io/yaml does: accepts scalars of YAML 1.1, anchors and aliases,
 * turns keys into strings, and reads only the first document. For the bodies of requests, the audit
 * policy and the encryption configuration. Unlike sigs.k8s.io/yaml, refuses merge keys ("<<") and
 * unusual tags. Thread: any.
 */
#include <stddef.h>

struct hf__strbuf;
struct hf_status;

/*
 * Appends the JSON to out. out->max limits the JSON, because aliases can make a small text large. A
 * key that occurs twice also occurs twice in the JSON. 0, -ENOMEM, HF_E_INVALID (with a message; if
 * sigs.k8s.io/yaml refuses the text too, usually in its words), HF_E_TOO_LARGE (out is full), or
 * HF_E_UNAVAILABLE (libyaml cannot be loaded).
 */
int hf__yaml_body_to_json(const char *text, size_t n, struct hf__strbuf *out,
                          struct hf_status *reterr_status);
