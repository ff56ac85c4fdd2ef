/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The fields of custom resources that field selectors may name (spec.versions[].selectableFields).
 * Pure. Thread: any.
 */
#include "server/resources/custom/custom_kind.h"

/* Whether a selector for the version may name the field "spec.color". */
bool hfd_custom_is_selectable(const struct hfd_custom_version *version, const char *field);
/* Copies the selectable fields of all versions of the kind from object to selectable, as strings.
 * The key of each is the path with its dot, ".spec.color", which no other member of selectable has.
 * A field that is missing, or is no string, number or boolean, is left out. 0 or -ENOMEM. */
int hfd_custom_selectable(const struct hfd_custom_kind *kind, const struct hf__json *object,
                          struct hf__json *selectable);
/* The copied value of the field "spec.color", borrowed from selectable. NULL: the object has no
 * value, or the kind for which the fields were copied has no such field. */
const char *hfd_custom_selectable_text(const struct hf__json *selectable, const char *field);
