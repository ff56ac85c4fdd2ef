/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Validates the names of field managers, which clients send as a parameter of the query and in
 * metadata.managedFields. Pure. Thread: any.
 */
#include <stdbool.h>

#include "server/resources/causes.h"

struct hf__json;

#define HFD_FIELD_MANAGER_MAX     128 /* bytes of the name of a manager */
#define HFD_SUBRESOURCE_BYTES_MAX 256 /* of the subresource in an entry of managedFields */

/* Adds a cause for each mistake. field: the path of the name, for the causes. */
void hfd_manager_name_validate(const char *name, const char *field, struct hfd_causes *causes);
/* Whether hfd_managed_fields_validate might add a cause. list: managedFields. False if it is NULL,
 * or a raw value (json.h), which no client has sent. */
bool hfd_managed_fields_are_suspect(const struct hf__json *list);
/*
 * Adds a cause for each mistake in a manager or a subresource of the list, unless an entry of
 * old_list has the same one: an object that was stored with it must remain writable.
 * old_list: of the stored object, parsed; NULL = a create, or it has none.
 */
void hfd_managed_fields_validate(const struct hf__json *list, const struct hf__json *old_list,
                                 struct hfd_causes *causes);
