/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rules of custom resources: x-kubernetes-validations of a schema, in the Common Expression
 * Language. Messages, limits and the choice of what is evaluated are those of kube-apiserver.
 *
 * Owner: the caller frees what it makes. Blocks: never. Thread: any; rules do not change once they
 * are made, so several threads may check objects with them at the same time.
 *
 * Stack: each function needs less than HFD_CUSTOM_RULES_STACK bytes, some 96 KiB at most. That is
 * why an expression has at most 60 levels (rule.h), where Kubernetes allows 250.
 */
#include <stddef.h>

struct hf__json;
struct hfd_causes;
struct hfd_custom_rules;
struct hfd_schema_effort;

#define HFD_CUSTOM_RULES_STACK ((size_t)128 * 1024)

/*
 * Compiles all x-kubernetes-validations below props, a structural schema that is valid otherwise;
 * props is not used after the call. path: that of props in the definition,
 * "spec.versions[0].schema.openAPIV3Schema".
 *
 * causes gets what is wrong with the rules, their estimated cost included. causes NULL = mistakes
 * are not reported (a stored definition): a rule that does not compile then refuses every object
 * that has the rule's part, and a rule of a part that expressions cannot see is left out.
 *
 * effort: of a definition that is validated (schema/compile/effort.h); NULL = there is no limit.
 * What compiling takes is added. Once that is too much, no rule is compiled any more, and causes
 * gets a cause that says so.
 *
 * *ret NULL = the limit was exceeded, or there are no rules outside of allOf, or none that
 * expressions can see. 0 or -ENOMEM.
 */
int hfd_custom_rules_new(const struct hf__json *props, const char *path,
                         struct hfd_schema_effort *effort, struct hfd_causes *causes,
                         struct hfd_custom_rules **ret);
struct hfd_custom_rules *hfd_custom_rules_free(struct hfd_custom_rules *rules); /* accepts NULL */

/* Checks an object against the rules. rules NULL = there are none; old NULL = create. Call it after
 * all other checks of the object, with the same causes: if one of these is a missing field, a wrong
 * type or the like, the rules are not evaluated, and a cause says so. 0 or -ENOMEM. */
int hfd_custom_rules_check(const struct hfd_custom_rules *rules, const struct hf__json *object,
                           const struct hf__json *old, struct hfd_causes *causes);
