/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules for a value of which an update may change only some parts. The update may be unable to mend
 * a mistake in the other parts, which may have been stored before there was a rule against it. So a
 * mistake that the old value has, too, is no reason to refuse the update. A template may change as
 * a whole, so only a few kinds of mistakes are excused there.
 *
 * Invariants: a mistake that the update itself makes is refused, unless it is in a template, and
 * the old template has one of the same kind (`allowed`). Each value that the rules read has the
 * form of its schema. If the old value, which another program may have stored, cannot get that
 * form, the rules read only the new one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "server/resources/strategies/pod/pod_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/schema/decode.h"

int hfd_formed_copy(const struct hfd_schema *schema, const struct hf__json *value,
                    struct hf__json **ret_copy, char reason[HFD_FORM_REASON_MAX]) {
        if (!hf__json_is_object(value)) {
                (void)snprintf(reason, HFD_FORM_REASON_MAX, "the stored value is not an object");
                return HF_E_INVALID;
        }
        HF__CLEANUP(hf__json_cleanup) struct hf__json *copy = hf__json_dup(value);
        int r = copy ? hfd_strict_drop_duplicates(copy, NULL, NULL) : -ENOMEM;

        if (r == 0)
                r = hfd_schema_decode(schema, copy, NULL, reason, HFD_FORM_REASON_MAX);
        if (r == 0)
                *ret_copy = HF__TAKE(copy);
        return r;
}

/* Whether two paths are equal apart from positions in lists: an update may remove what was before a
 * mistake, such as a gate. */
static bool is_same_place(const char *a, const char *b) {
        for (; *a && *a == *b; a++, b++) {
                size_t n = *a == '[' ? strspn(a + 1, "0123456789") : 0,
                       m = *a == '[' ? strspn(b + 1, "0123456789") : 0;
                if (n > 0 && m > 0 && a[n + 1] == ']' && b[m + 1] == ']') {
                        a += n;
                        b += m;
                }
        }
        return *a == *b;
}

/* Drops from the causes that were added after the first n those that the old value has, too. One of
 * the old causes excuses one of the new ones. was: has the form of its schema. Not inlined, because
 * the causes would take much of the stack of the caller (registry/write/steps/update.c). */
__attribute__((noinline)) static void drop_old_causes(const struct hfd_change_rules *rules,
                                                      const struct hf__json *was, const char *field,
                                                      size_t n, struct hfd_causes *causes) {
        struct hfd_causes old;
        size_t kept = n;

        hfd_causes_init(&old);
        rules->validate(was, field, &old);
        if (!hfd_causes_check(causes, old.error))
                return;
        for (size_t i = n; i < causes->n; i++) {
                size_t k = 0;
                while (k < old.n && (!is_same_place(old.items[k].field, causes->items[i].field) ||
                                     strcmp(old.items[k].text, causes->items[i].text) != 0))
                        k++;
                if (k < old.n)
                        old.items[k] = old.items[--old.n];
                else
                        causes->items[kept++] = causes->items[i];
        }
        causes->n = kept;
}

void hfd_change_validate(const struct hfd_change_rules *rules, const struct hf__json *value,
                         const struct hf__json *was, const char *field, struct hfd_causes *causes) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *formed = NULL;
        char reason[HFD_FORM_REASON_MAX];
        size_t n = causes->n;

        rules->validate(value, field, causes);
        if (causes->n > n && causes->n < HFD_CAUSES_MAX && hf__json_is_object(was) &&
            hfd_causes_check(causes, hfd_formed_copy(rules->schema, was, &formed, reason)))
                drop_old_causes(rules, formed, field, n, causes);
}

/* ---- templates ---- */

/* A kind of mistake: parts of the field of its causes, and a part of their texts; NULL: any. */
struct mistake {
        const char *field, *member, *text;
};

/* What a template may have if the old one has it, too: the options of Kubernetes' validation whose
 * names begin with "Allow". Other mistakes can be mended by the update. */
static const struct mistake allowed[] =
        {{".projected.path", NULL, "Invalid value"},
         {NULL, NULL, " is not positive integer multiple of hugepages-"},
         {".affinity.nodeAffinity.requiredDuring", ".values[", NULL},
         {".affinity.podA", ".values[", NULL},
         {".topologySpreadConstraints[", ".labelSelector", NULL},
         {".sysctls[", NULL, "may not be specified when 'host"},
         {NULL, ".volumeDevices", "when `hostUsers` is false"},
         {".initContainers[", ".resizePolicy[", "must not be set to 'RestartContainer'"}};

static bool has_part(const char *text, const char *part) { return !part || strstr(text, part); }

static bool is_of_kind(const struct hfd_cause *cause, const struct mistake *kind) {
        return has_part(cause->field, kind->field) && has_part(cause->field, kind->member) &&
               has_part(cause->text, kind->text);
}

/* Whether the cause is one of those that are allowed because the old template has one of its kind.
 */
static bool is_allowed(const struct hfd_cause *cause, const struct hfd_causes *old) {
        for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
                for (size_t k = 0; k < old->n && is_of_kind(cause, &allowed[i]); k++)
                        if (is_of_kind(&old->items[k], &allowed[i]))
                                return true;
        return false;
}

/* Drops what is allowed from the causes that were added after the first n. was: has the form of its
 * schema. Not inlined, like drop_old_causes. */
__attribute__((noinline)) static void drop_allowed(const struct hf__json *was, const char *field,
                                                   size_t n, struct hfd_causes *causes) {
        struct hfd_causes old;
        size_t kept = n;

        hfd_causes_init(&old);
        hfd_pod_template_spec_validate(was, field, &old);
        if (!hfd_causes_check(causes, old.error))
                return;
        for (size_t i = n; i < causes->n; i++)
                if (!is_allowed(&causes->items[i], &old))
                        causes->items[kept++] = causes->items[i];
        causes->n = kept;
}

void hfd_template_change_validate(const struct hf__json *template, const struct hf__json *was,
                                  const char *field, struct hfd_causes *causes) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *formed = NULL;
        char reason[HFD_FORM_REASON_MAX];
        size_t n = causes->n;

        hfd_pod_template_spec_validate(template, field, causes);
        if (causes->n > n && causes->n < HFD_CAUSES_MAX && hf__json_is_object(was) &&
            hfd_causes_check(causes,
                             hfd_formed_copy(&hfd_pod_template_spec_schema, was, &formed, reason)))
                drop_allowed(formed, field, n, causes);
}
