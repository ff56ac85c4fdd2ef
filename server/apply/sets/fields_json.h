/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The JSON form of a set of fields, FieldsV1. Thread: owner only. */
#include "server/apply/sets/fields.h"

struct hf__json;
struct hf__strbuf;

/*
 * Parses a set, which borrows texts from json. Steps of unknown kinds are ignored. 0; -ENOMEM;
 * HF_E_INVALID: json is not FieldsV1, or is deeper than HFD_FIELDS_DEPTH.
 */
int hfd_fields_parse(struct hf__arena *scratch, const struct hf__json *json,
                     const struct hfd_fields **ret_fields);
/* The JSON form, with the steps in Kubernetes' order. NULL: out of memory. The caller owns it. */
struct hf__json *hfd_fields_to_json(const struct hfd_fields *fields);
