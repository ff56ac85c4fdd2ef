/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rules for the schemas in CustomResourceDefinitions ("structural schemas"), and the functions
 * and state that they share: the place in the definition, and the causes. The rules read the JSON
 * of a definition. To them, as in Kubernetes' Go structs, null is the same as an absent member, and
 * so is an empty value (false, "", []), except for fields that are pointers in Go: for these the
 * rules call hfd_structure_has.
 *
 * props: a schema as JSON. path: its place. Thread: owner only.
 */
#include <stdbool.h>
#include <stddef.h>

#include "server/resources/causes.h"

#define HFD_STRUCTURE_PATH_MAX 256 /* bytes of a path, with the NUL; longer ones are cut */

struct hf__json;
struct hfd_custom_node;
struct hfd_schema_effort;

/* A path is a list of steps like `.properties[name]`, `.allOf[0]` or `.items`. Each step is on the
 * stack of the function that takes it, and valid until that returns. */
struct hfd_structure_path {
        const struct hfd_structure_path *up; /* NULL: this is the schema itself, `child` its path */
        const char *child;
        const char *key; /* NULL = none */
        size_t index;    /* with has_index */
        bool has_index;
};

struct hfd_structure {
        struct hfd_causes *causes; /* borrowed */
        void *indices; /* owned; a tree of <search.h> with the indices of large objects */
        /* Both for hfd_structure_check_pattern. effort: of the definition; borrowed; NULL at first,
         * so the caller sets it before hfd_structure_check_invariants. patterns: owned; a tree of
         * <search.h> with the patterns that are valid, whose texts it borrows. */
        struct hfd_schema_effort *effort;
        void *patterns;
};

/* The definition must not change until hfd_structure_done: the trees borrow from it. causes NULL:
 * before hfd_structure_done, only hfd_structure_member and the functions without a structure may be
 * called. */
void hfd_structure_init(struct hfd_structure *structure, struct hfd_causes *causes);
void hfd_structure_done(struct hfd_structure *structure);
void hfd_structure_patterns_done(struct hfd_structure *structure); /* for hfd_structure_done */

/* A step below a path. */
struct hfd_structure_path hfd_step(const struct hfd_structure_path *up, const char *child);
struct hfd_structure_path hfd_step_key(const struct hfd_structure_path *up, const char *child,
                                       const char *key);
struct hfd_structure_path hfd_step_index(const struct hfd_structure_path *up, const char *child,
                                         size_t index);
/* The text of a path, with `.child` at the end unless child is NULL. */
void hfd_structure_path_print(const struct hfd_structure_path *path, const char *child,
                              char text[HFD_STRUCTURE_PATH_MAX]);

/* These add a cause at path.child; child NULL: at the path. They are "Forbidden", "Required value"
 * and "Invalid value". */
void hfd_structure_forbid(struct hfd_structure *structure, const struct hfd_structure_path *path,
                          const char *child, const char *detail);
void hfd_structure_require(struct hfd_structure *structure, const struct hfd_structure_path *path,
                           const char *child, const char *detail);
void hfd_structure_refuse(struct hfd_structure *structure, const struct hfd_structure_path *path,
                          const char *child, const struct hf__json *value, const char *detail);
/* The same for a text; NULL is "". */
void hfd_structure_refuse_text(struct hfd_structure *structure,
                               const struct hfd_structure_path *path, const char *child,
                               const char *value, const char *detail);

/* The member of an object, in logarithmic time if the object is large. NULL = none. */
const struct hf__json *hfd_structure_member(struct hfd_structure *structure,
                                            const struct hf__json *object, const char *key);
/* The text of a member; "" = none. */
const char *hfd_structure_text(const struct hf__json *props, const char *key);
/* Whether the member is true. */
bool hfd_structure_flag(const struct hf__json *props, const char *key);
/* has: the member is there and is not null. is_filled: it has elements or members. */
bool hfd_structure_has(const struct hf__json *props, const char *key);
bool hfd_structure_is_filled(const struct hf__json *props, const char *key);
/* Whether a value counts as absent: null, false, "", [] or {}. */
bool hfd_structure_is_zero(const struct hf__json *value);

/* ---- the rules, each for a schema and all below it, unless its comment says otherwise ---- */

/* Which keywords may be used where. */
void hfd_structure_check_invariants(struct hfd_structure *structure, const struct hf__json *props,
                                    const struct hfd_structure_path *path);
/* Every field that a value validation of the root names must also be declared in the structure. */
void hfd_structure_check_completeness(struct hfd_structure *structure, const struct hf__json *props,
                                      const struct hfd_structure_path *path);
/* Checks the pattern, if there is one, of one schema. A valid text is compiled only once. Nothing
 * is compiled after the effort has exceeded its limits. */
void hfd_structure_check_pattern(struct hfd_structure *structure, const struct hf__json *props,
                                 const struct hfd_structure_path *path);
/* Rules for single keywords. */
void hfd_structure_check_keywords(struct hfd_structure *structure, const struct hf__json *props,
                                  const struct hfd_structure_path *path);
/* The rules of x-kubernetes-list-type, x-kubernetes-map-type and so on, for one schema. */
void hfd_structure_check_lists(struct hfd_structure *structure, const struct hf__json *props,
                               const struct hfd_structure_path *path);
/* Defaults must be valid by their schemas; those below additionalProperties are not checked. node:
 * the compiled props. */
void hfd_structure_check_defaults(struct hfd_structure *structure, const struct hf__json *props,
                                  const struct hfd_custom_node *node,
                                  const struct hfd_structure_path *path);
