/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Validates ObjectMeta. The rules for names depend on the resource, and those for finalizers on its
 * group. Labels, annotations, owners and the fields that an update must not change have the same
 * rules for all kinds. Pure. Thread: any.
 */
#include "server/resources/causes.h"
#include "server/resources/resource.h"

/*
 * Adds a cause for each mistake in the metadata of object, whose values may have any type: a write
 * to the status of a custom resource takes them from the store. old: the stored object that object
 * replaces; NULL = a create.
 */
void hfd_meta_validate(const struct hfd_resource *resource, const struct hf__json *object,
                       const struct hf__json *old, struct hfd_causes *causes);
/* The same for labels or annotations elsewhere, for example in a template. field: their path, for
 * the causes. Values are strings. labels and annotations may be NULL. */
void hfd_labels_validate(const struct hf__json *labels, const char *field,
                         struct hfd_causes *causes);
void hfd_annotations_validate(const struct hf__json *annotations, const char *field,
                              struct hfd_causes *causes);
/* A DNS label; and a DNS subdomain in the first n bytes of the text. A text may be too long and
 * have a wrong form, and has a cause for each then. shown: the text in the causes. The third
 * function has a single cause with both rules. */
void hfd_label_text_validate(const char *text, const char *field, const char *shown,
                             struct hfd_causes *causes);
void hfd_subdomain_text_validate(const char *text, size_t n, const char *field, const char *shown,
                                 struct hfd_causes *causes);
void hfd_subdomain_text_validate_once(const char *text, size_t n, const char *field,
                                      const char *shown, struct hfd_causes *causes);
/* The same for a key in the data of a ConfigMap or Secret. */
void hfd_config_key_validate(const char *key, const char *field, struct hfd_causes *causes);
/* The same for a qualified name, which has the syntax of the key of a label. */
void hfd_qualified_name_validate(const char *name, const char *field, struct hfd_causes *causes);
