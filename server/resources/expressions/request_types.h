/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The declared types of the variables of admission. Static. Thread: any. */
#include <stddef.h>

struct hf__cel_type;

const struct hf__cel_type *hfd_admission_request_type(void); /* of request */
const struct hf__cel_type *hfd_namespace_type(void);         /* of namespaceObject */
/* The type that mutating policies construct, besides Object: JSONPatch. */
const struct hf__cel_type *const *hfd_patch_types(size_t *ret_n);
