/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The parts that webhooks and policies of admission have in common: the schemas of rules and
 * matchConditions, their defaults and their validation. Names and texts are those of Kubernetes.
 * Pure. Thread: the one that owns the object.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/schema/schema.h"

struct hf__json;
struct hfd_causes;

#define HFD_ADMISSION_V1 "io.k8s.api.admissionregistration.v1."

extern const struct hfd_schema hfd_match_condition_schema;      /* MatchCondition */
extern const struct hfd_schema hfd_rule_with_operations_schema; /* of webhooks */
extern const struct hfd_schema hfd_match_resources_schema;      /* of policies and bindings */

/* Sets the default scope of each rule of a list. 0, -ENOMEM, or -EINVAL: a rule in the store is no
 * object. */
int hfd_match_rules_prepare(struct hf__json *rules);
/* Sets the defaults of MatchResources. resources NULL or no object: there is nothing to set. The
 * same errors. */
int hfd_match_resources_prepare(struct hf__json *resources);

/* ---- validation ---- */

/* Each function adds a cause for each mistake. field: the path of the value. */

/* A LabelSelector. */
void hfd_match_selector_validate(const struct hf__json *selector, const char *field,
                                 struct hfd_causes *causes);
/* A rule with operations. */
void hfd_match_rule_validate(const struct hf__json *rule, const char *field,
                             struct hfd_causes *causes);
/* A name that must be a segment of a path, such as that of an object in a rule or a binding. */
void hfd_match_name_validate(const char *name, const char *field, struct hfd_causes *causes);
/* MatchResources; NULL: there are none, which is valid. */
void hfd_match_resources_validate(const struct hf__json *resources, const char *field,
                                  struct hfd_causes *causes);
/* Checks that the resourceRules of a mutating policy or its binding name only CREATE, UPDATE,
 * CONNECT or *, but not DELETE: a delete has no object to change. field: the path of the operations
 * of these rules, without indexes. */
void hfd_mutating_rules_validate(const struct hf__json *resources, const char *field,
                                 struct hfd_causes *causes);
/* matchConditions, which are compiled; NULL: there are none, which is valid. params: they may use
 * the variable params, because the policy has a paramKind. *work: the work (hfd_expressions_work)
 * of compiling the object's other expressions so far, to which the function adds that of the
 * conditions. Beyond HFD_EXPRESSIONS_COMPILE_MAX no more are compiled, and a cause says so. Stack:
 * as for expressions (expressions/expressions.h). */
void hfd_match_conditions_validate(const struct hf__json *conditions, bool params,
                                   const char *field, uint64_t *work, struct hfd_causes *causes);
