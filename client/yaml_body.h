/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Converts the YAML of a request's body to JSON, as sigs.k8s.io/yaml does: scalars of YAML 1.1,
 * keys that become texts, anchors and aliases. Only the first document counts. Thread: any.
 */
#include <stddef.h>

struct hf__strbuf;
struct hf_status;

/*
 * Appends the JSON to out, whose `max` limits what aliases can make of a small text. Keys that
 * occur twice occur twice in the JSON. 0, -ENOMEM, HF_E_INVALID (the message has the words of
 * go-yaml), HF_E_TOO_LARGE (out is full), or HF_E_UNAVAILABLE (libyaml cannot be loaded).
 */
int hf__yaml_body_to_json(const char *text, size_t n, struct hf__strbuf *out,
                          struct hf_status *reterr_status);
