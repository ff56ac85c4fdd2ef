/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The schema of one version of a custom kind: its openAPIV3Schema, compiled once when the
 * CustomResourceDefinition changes, and used for each object. Behaviour and messages are those of
 * kube-apiserver.
 *
 * A write uses the functions in this order: prune, default, validate. Prune and default take time
 * in proportion to the object and to what they add. Validate takes n log n, times the alternatives
 * (anyOf and so on) that the schema has for a value. The depth of their recursion is that of the
 * object and the schema, which the JSON parser limits. Pure.
 *
 * Ownership: the schema belongs to the caller. Thread: any, since a schema never changes; an object
 * belongs to the thread that calls.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;
struct hfd_causes;
struct hfd_custom_schema;
struct hfd_schema;
struct hfd_schema_effort;
struct hfd_strict;

/* Values that the defaults of one object may add. Without a limit, a long list of empty objects
 * would grow by the product of its length and the size of the default. */
#define HFD_CUSTOM_DEFAULTS_MAX 500000
/* Bytes of texts and keys that the defaults may add: more than the largest body (3 MiB) has. */
#define HFD_CUSTOM_DEFAULT_BYTES_MAX ((size_t)4 << 20)

/*
 * Compiles a stored schema, without the limits of compile/effort.h. props: the value of
 * openAPIV3Schema; it is not used after the call. NULL = the version has no schema, and everything
 * is kept. 0, -ENOMEM, or HF_E_INVALID: props cannot be compiled, for example because of an unknown
 * type. A pattern that cannot be compiled refuses every text. That props keep all structural rules
 * is not checked here (structural.h).
 */
int hfd_custom_schema_new(const struct hf__json *props, struct hfd_custom_schema **ret_schema);
/* The same for a schema that is validated: if a pattern cannot be compiled, the result is
 * HF_E_INVALID. What the patterns take is added to effort, which must not be NULL. HF_E_TOO_LARGE:
 * effort is then beyond a limit (compile/effort.h). */
int hfd_custom_schema_new_limited(const struct hf__json *props, struct hfd_schema_effort *effort,
                                  struct hfd_custom_schema **ret_schema);
/* As hfd_custom_schema_new. definition, which is copied, is the name of the root in OpenAPI
 * ("com.example.v1.Foo"). NULL = none. */
int hfd_custom_schema_new_named(const struct hf__json *props, const char *definition,
                                struct hfd_custom_schema **ret_schema);
/* Accepts NULL, returns NULL. */
struct hfd_custom_schema *hfd_custom_schema_free(struct hfd_custom_schema *schema);

/*
 * The fields as the rest of the server reads them: a STRUCT with apiVersion, kind and metadata
 * (which has the shared schema of ObjectMeta). Structs below the root have no definition of their
 * own, and only the fields of all resources have descriptions. Every string is a TEXT, whatever
 * its format. Lives as long as schema.
 */
const struct hfd_schema *hfd_custom_schema_fields(const struct hfd_custom_schema *schema);

/*
 * Removes the fields that the schema does not have, and reports them to strict, unless that is
 * NULL. Embedded resources keep apiVersion, kind and metadata; of their metadata only the fields of
 * ObjectMeta stay, or all if a field of ObjectMeta has a wrong type. The metadata of the object
 * itself is not touched. Never refuses a wrong type: validate does. 0 or -ENOMEM.
 */
int hfd_custom_schema_prune(const struct hfd_custom_schema *schema, struct hf__json *object,
                            struct hfd_strict *strict);
/*
 * Adds the defaults of absent fields. A null where the schema does not allow null becomes the
 * default; if there is none, a field is removed, and an element of a list stays null. 0, -ENOMEM,
 * or HF_E_TOO_LARGE: more values than HFD_CUSTOM_DEFAULTS_MAX, or more bytes than
 * HFD_CUSTOM_DEFAULT_BYTES_MAX, would be added. After a failure the object may be changed in part.
 */
int hfd_custom_schema_default(const struct hfd_custom_schema *schema, struct hf__json *object);
/*
 * Whether an object has the form of the schema already: whether hfd_object_encode would print the
 * same text again after prune and default. False also in doubt. Takes a fraction of the time that a
 * parser takes.
 */
bool hfd_custom_schema_is_formed(const struct hfd_custom_schema *schema, const char *data,
                                 size_t n);
/*
 * Adds a cause for each mistake in the object. old: the stored object that it replaces; then a
 * mistake in a part that has not changed gets no cause (ratcheting), and repeated elements get none
 * if old has some. Mistakes in embedded resources always get one. So do those in kind and
 * apiVersion of the object itself, unless nothing has changed. old NULL = a create.
 */
void hfd_custom_schema_validate(const struct hfd_custom_schema *schema,
                                const struct hf__json *object, const struct hf__json *old,
                                struct hfd_causes *causes);

/* About how many bytes the schema occupies. */
size_t hfd_custom_schema_memory(const struct hfd_custom_schema *schema);
