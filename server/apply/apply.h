/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Server-side apply: a manager states the fields that it wants an object to have. From then on it
 * owns them, together with other managers that want the same values. A field that the manager
 * stated before, and does not state any more, is removed unless another manager owns it. Thread:
 * owner only.
 */
#include "server/apply/conflicts.h"
#include "server/apply/ownership.h"

/*
 * Applies config to live; live NULL = there is no object yet. Both are objects in which no key
 * occurs twice; neither is changed. metadata.managedFields of live is no raw value (json.h): that
 * would count as malformed, and live as an object without managers. config has the form of
 * hfd_schema_decode_config, and no metadata.managedFields. *ret_object: the new object with its
 * managers; if nothing changes, it is equal to live. The caller owns it.
 *
 * force: takes fields from other managers.
 *
 * 0 or -ENOMEM. HF_E_CONFLICT: other managers own fields of config, and want other values.
 * HF_E_INVALID: config has a list of the type map or set in which two elements have the same step
 * (sets/step.h), or an element has none. After these two errors failure says why. The caller calls
 * hfd_apply_failure_done in any case.
 */
int hfd_apply(const struct hfd_schema *schema, const struct hf__json *live,
              const struct hf__json *config, const struct hfd_writer *writer, bool force,
              struct hf__json **ret_object, struct hfd_apply_failure *failure);
