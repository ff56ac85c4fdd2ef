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

struct hfd_check {
        struct hfd_check_report report;
        struct hf__cel_run run;       /* of the searches for patterns; limits their work */
        struct hfd_compared compared; /* parts that were compared with their old form */
        struct hf__arena arena;       /* of the run and of `compared` */
};

/* A value that is checked. The members except n_matched and differs are borrowed or constant. */
struct hfd_checked {
        const struct hf__json *value;
        const struct hfd_place *place;
        /* How many checks have succeeded. Of several alternatives that fail, the one with the
         * highest number is reported. */
        size_t n_matched;
        bool records; /* whether causes are added */
        bool differs; /* it is invalid, and known to differ from the old value */
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

/* Checks a value and everything below it. Returns whether it is valid. structure: the node that has
 * the types of its lists and maps; NULL = not known. old: the value that it replaces; NULL = none.
 * A part that is invalid and equal to the old part is accepted. */
bool hfd_check_value(struct hfd_check *check, const struct hfd_custom_node *node,
                     const struct hfd_custom_node *structure, const struct hf__json *old,
                     struct hfd_checked *checked);
/* causes and prefix are borrowed until hfd_check_done. prefix: the path of the object, for the
 * causes; "" = none. value: what will be checked; the work of its patterns is limited in proportion
 * to its texts. */
void hfd_check_init(struct hfd_check *check, struct hfd_causes *causes, const char *prefix,
                    const struct hf__json *value);
/* Frees the memory of the searches. Adds a cause if they needed too much work, unless the object is
 * accepted all the same, and notes in the causes if memory ran out. */
void hfd_check_done(struct hfd_check *check, bool accepted);
