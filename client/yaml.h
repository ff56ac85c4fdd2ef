/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The doorway to libyaml, which is loaded when the first YAML text is met and not linked: an embedder who has none needs
 * none. YAML becomes JSON text; one document; anchors, aliases and tags (but !!str) are refused, because a small text with
 * them can stand for a huge one. Thread: any.
 */
#include <stddef.h>

struct hf__strbuf;
struct hf_status;

/* 0, -ENOMEM, HF_E_INVALID (line and reason), HF_E_UNAVAILABLE (libyaml is not there), HF_E_TOO_LARGE (out's limit). */
int hf__yaml_to_json(const char *text, size_t n, struct hf__strbuf *out, struct hf_status *reterr_status);
