/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rules of a schema as a tree. A part of the schema has a node only if it or a part below it
 * has rules. All of it belongs to the arena of the rules. Immutable once made.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "server/resources/custom/rules/rule.h"

struct hfd_declared;

struct hfd_rule_node {
        const char *name;                    /* as a property of its parent; otherwise NULL */
        struct hfd_rule_node *next;          /* only used while the tree is made */
        const char *type;                    /* of the schema; "" = none */
        const struct hfd_declared *declared; /* NULL: there are no rules here */
        struct hfd_rule *rules;
        size_t n_rules;
        struct hfd_rule_node **properties; /* sorted by name */
        size_t n_properties;
        struct hfd_rule_node **all_of;
        size_t n_all_of;
        struct hfd_rule_node *values; /* of additionalProperties */
        struct hfd_rule_node *items;
        const char **keys; /* of a list that is a map */
        size_t n_keys;
};

struct hfd_custom_rules {
        struct hf__arena arena;
        const struct hf__cel_library *library;
        struct hfd_rule_node *root;
        struct hfd_rule *all; /* every rule, through `next`: their programs are not in the arena */
};
