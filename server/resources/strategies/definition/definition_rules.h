/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rules of the parts of a CustomResourceDefinition. Each function that takes causes adds one
 * for each mistake. path: where the part is, such as "spec.names". A part may be NULL: it is
 * absent.
 *
 * Paths and texts are those of kube-apiserver, because clients show them and tests compare them.
 * The paths are those of its internal version: a part that is equal in all versions is not in
 * `spec.versions[i]` there, but in `spec` (definition_validation.c). Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#define HFD_DEFINITION_PATH_MAX 160 /* bytes of a path, with the NUL: as in a cause */

struct hf__json;
struct hfd_causes;
struct hfd_schema_effort;

/* The string at a path; "" if there is none. */
const char *hfd_definition_text(const struct hf__json *object, const char *path);
/* A name that must be a DNS-1035 label. shown: the name as the cause shows it. prefix: the text in
 * front of the rule. */
void hfd_definition_check_label(const char *name, const char *path, const char *shown,
                                const char *prefix, struct hfd_causes *causes);
/* definition_names.c: the names in the spec or in status.acceptedNames. */
void hfd_definition_check_names(const struct hf__json *names, const char *path,
                                struct hfd_causes *causes);

/* definition_version.c: parts of a version. path: for the deprecation warning, that of the version;
 * for subresources, their own; for columns, that of the version or the spec that has them. */
void hfd_definition_check_deprecation(const struct hf__json *version, const char *path,
                                      struct hfd_causes *causes);
void hfd_definition_check_subresources(const struct hf__json *subresources, const char *path,
                                       struct hfd_causes *causes);
void hfd_definition_check_columns(const struct hf__json *columns, const char *path,
                                  struct hfd_causes *causes);

/* definition_selectable.c: the fields that field selectors may name. props: the schema that their
 * paths lead into. path: of the version or the spec that has the list. unchanged: an update leaves
 * the list as it is. Then the list may be longer than the limit. */
void hfd_definition_check_selectable(const struct hf__json *fields, const struct hf__json *props,
                                     const char *path, bool unchanged, struct hfd_causes *causes);

/* definition_approval.c: the annotation that a definition in a group of Kubernetes needs. old: the
 * stored definition; NULL: a create. */
void hfd_definition_check_approval(const struct hf__json *object, const struct hf__json *old,
                                   struct hfd_causes *causes);

/*
 * definition_props.c: the openAPIV3Schema of a version, or of all versions. has_status: the
 * version, or one of them, has the subresource status. unchanged: an update leaves the schema as it
 * is; then only a few rules of its root are checked again, because a later server may refuse what
 * an older one has accepted. effort: that of the whole definition. An unchanged schema counts in
 * it, too (custom/schema/compile/effort.h). NULL: no schema has changed.
 */
void hfd_definition_check_props(const struct hf__json *props, const char *path, bool has_status,
                                bool unchanged, struct hfd_schema_effort *effort,
                                struct hfd_causes *causes);
/* Whether there is a default anywhere in a schema. */
bool hfd_definition_has_default(const struct hf__json *props);

/* definition_conversion.c: spec.conversion. old: the conversion before an update; NULL: there was
 * none. established: the definition was established before the update. */
void hfd_definition_check_conversion(const struct hf__json *conversion, const struct hf__json *old,
                                     bool established, struct hfd_causes *causes);
