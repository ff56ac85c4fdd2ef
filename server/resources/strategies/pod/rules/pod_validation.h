/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rules of a pod's template, for all kinds that have one. The functions add a cause for each
 * mistake. Objects have the form of their schemas, and their defaults. field: the path that leads
 * to the value. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/resources/causes.h"

struct hf__json;

#define HFD_FIELD_PATH_MAX 160 /* bytes, with the NUL: a cause keeps no more */

/* pod_validation.c */
void hfd_pod_template_spec_validate(const struct hf__json *template, const char *field,
                                    struct hfd_causes *causes);
void hfd_pod_spec_validate(const struct hf__json *spec, const char *field,
                           struct hfd_causes *causes);
/* toleration.c */
void hfd_toleration_validate(const struct hf__json *toleration, const char *field,
                             struct hfd_causes *causes);
/* volume_validation.c: spec.volumes */
void hfd_volumes_validate(const struct hf__json *spec, const char *field,
                          struct hfd_causes *causes);
/* A field of the pod that a variable (or a file of a volume) shows. */
void hfd_object_field_selector_validate(const struct hf__json *selector, const char *field,
                                        bool of_volume, struct hfd_causes *causes);
/* container_validation.c: spec.containers, spec.initContainers and spec.ephemeralContainers */
void hfd_containers_validate(const struct hf__json *spec, const char *field,
                             struct hfd_causes *causes);
/* The name of an image, which in templates may have spaces around it. */
void hfd_image_validate(const struct hf__json *container, const char *field,
                        struct hfd_causes *causes);
/* variable_validation.c: env and envFrom of a container */
void hfd_variables_validate(const struct hf__json *container, const char *field,
                            struct hfd_causes *causes);
/* handler_validation.c: the probes of a container, and its lifecycle. grace: the seconds that a pod
 * has to stop */
void hfd_handlers_validate(const struct hf__json *container, const char *field, int64_t grace,
                           struct hfd_causes *causes);

/* ---- helpers of these files: field_path.c ---- */

/* "" for an absent text. key: of a member, not a path. Borrowed. */
const char *hfd_text_of(const struct hf__json *object, const char *key);
/* The path of a member: "a" and "b" are "a.b". Returns out, which must not be one of the texts. */
const char *hfd_field_path(char out[HFD_FIELD_PATH_MAX], const char *field, const char *member);
/* The path of an element: "a" and 1 are "a[1]". */
const char *hfd_field_index(char out[HFD_FIELD_PATH_MAX], const char *field, size_t i);
/* "Required value" if the member is absent or "". Returns whether it has a text. */
bool hfd_require_text(const struct hf__json *object, const char *field, const char *member,
                      struct hfd_causes *causes);
/* "Unsupported value" unless the member is one of the values, which end with NULL. An absent member
 * counts as "": "Required value", unless "" is one of the values. */
void hfd_require_one_of(const struct hf__json *object, const char *field, const char *member,
                        const char *const *values, struct hfd_causes *causes);
/* "Invalid value" unless the number is absent, or min <= number <= max. detail names the range. */
void hfd_require_range(const struct hf__json *object, const char *field, const char *member,
                       int64_t min, int64_t max, const char *detail, struct hfd_causes *causes);
/* The number of a port or its name. port NULL counts as 0, which is invalid. */
void hfd_port_validate(const struct hf__json *port, const char *field, struct hfd_causes *causes);
void hfd_port_name_validate(const char *name, const char *field, struct hfd_causes *causes);
/* A DNS label. An absent member or "": "Required value". */
void hfd_label_name_validate(const struct hf__json *object, const char *field, const char *member,
                             struct hfd_causes *causes);
/* A DNS subdomain. "" is an "Invalid value" too. */
void hfd_subdomain_validate(const char *name, const char *field, struct hfd_causes *causes);
