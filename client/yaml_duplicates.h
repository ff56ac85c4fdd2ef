/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds the keys that occur twice in a mapping of YAML, with their lines and in the words of a
 * strict go-yaml v2. Only the first document counts. Thread: any.
 */
#include <stddef.h>

struct hf__strbuf;

/*
 * Appends "yaml: unmarshal errors:" and a line for each repeated key to out, at most n_max of them,
 * in go-yaml's order. Appends nothing if there are none. A text that libyaml does not accept, or
 * that is nested too deeply, counts up to there. 0, -ENOMEM or HF_E_UNAVAILABLE (libyaml cannot be
 * loaded); out may have an error too.
 */
int hf__yaml_duplicates(const char *text, size_t n, size_t n_max, struct hf__strbuf *out);
