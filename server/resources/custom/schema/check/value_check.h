/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The check of one object against the compiled schema of a custom resource. value_check.c has the
 * recursion; scalar.c and number.c check single values. Thread: owner only.
 */
#include <stdbool.h>

#include "base/arena.h"
#include "cel/values/run.h"
#include "server/resources/custom/schema/check/check_report.h"
#include "server/resources/custom/schema/check/compared.h"
#include "server/resources/custom/schema/compile/node.h"

/* Must not be copied or moved, because the arena must not. */
struct hfd_check {
        struct hfd_check_report report;
        struct hf__cel_run run;       /* of the searches for patterns; limits their work */
        struct hfd_compared compared; /* parts that were compared with their old form */
        struct hf__arena arena;       /* of the run and of `compared` */
};

/* A value that is checked. `value` and `place` are borrowed. A check changes only n_matched and
 * differs. */
struct hfd_checked {
        const struct hf__json *value;
        const struct hfd_place *place;
        /* What Kubernetes' validator counts (MatchCount): mostly the checks that apply to the value
         * and to what is below it, whether they succeed or not. Of several alternatives that fail,
         * the one with the highest number is reported. */
        size_t n_matched;
        bool records; /* whether causes are added */
        bool differs; /* the value is invalid, and known to differ from the old one */
};

/* The limit of a node that has the kind; NULL = there is none. *at: the position of the search, 0
 * at first. A caller asks for kinds in ascending order, which is the order of the limits. */
const struct hfd_custom_limit *hfd_next_limit(const struct hfd_custom_node *node, uint32_t *at,
                                              enum hfd_custom_limit_kind kind);

/* The checks of single values. Each returns false if the value is refused. */
bool hfd_check_type(struct hfd_check *check, const struct hfd_custom_node *node,
                    struct hfd_checked *checked);
bool hfd_check_text(struct hfd_check *check, const struct hfd_custom_node *node,
                    struct hfd_checked *checked);
bool hfd_check_number(struct hfd_check *check, const struct hfd_custom_node *node,
                      struct hfd_checked *checked);
bool hfd_check_enum(struct hfd_check *check, const struct hfd_custom_node *node,
                    struct hfd_checked *checked);

/* Checks a value and everything below it against node. Returns whether it is valid. structure: the
 * node of the value in the structure of the schema, which says how the elements of lists correspond
 * to old ones (node may be a value validation, which does not say this); NULL = not known. old: the
 * value that the checked one replaces; NULL = none. A part that is invalid and equal to the old
 * part is accepted. The value and old must stay, and not change, until hfd_check_done. */
bool hfd_check_value(struct hfd_check *check, const struct hfd_custom_node *node,
                     const struct hfd_custom_node *structure, const struct hf__json *old,
                     struct hfd_checked *checked);
/* causes and prefix are borrowed until hfd_check_done. prefix: the path of the object, for the
 * causes; "" = none. value: what will be checked; the work of searching its texts for patterns is
 * limited to a fixed amount and an amount in proportion to the bytes of the texts. */
void hfd_check_init(struct hfd_check *check, struct hfd_causes *causes, const char *prefix,
                    const struct hf__json *value);
/* Frees the memory of the searches. Adds a cause if they needed too much work, unless the object is
 * accepted all the same, and notes in the causes if memory ran out. */
void hfd_check_done(struct hfd_check *check, bool accepted);
