/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of what a container takes of its node: its resources, the claims for devices that it
 * uses, and whether a resize of its resources restarts it. The overhead of a pod, which it needs
 * beside its containers, has the rules of limits.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. Names are looked up in indexes, because a client chooses how
 * many there are.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/resource_names.h"

/* About so many bytes of names are listed in a cause, or more if the wrong name is short. */
#define NAMES_SHOWN_MAX 300
#define PAGES           "hugepages-" /* what the names of huge pages begin with */

/* ---- amounts ---- */

/* Whether there are huge pages, and CPU or memory, without which huge pages are of no use. */
struct kinds {
        bool pages, compute;
};

/* An element of limits, requests or overhead. field: its path in the cause. */
static void validate_amount(const struct hf__json *amount, const char *field, struct kinds *kinds,
                            struct hfd_causes *causes) {
        const char *name = hf__json_key(amount);

        hfd_resource_name_validate_container(name, field, causes);
        hfd_resource_value_validate(name, amount, field, causes);
        kinds->pages = kinds->pages || hf__text_begins_with(name, PAGES);
        kinds->compute = kinds->compute || strcmp(name, "cpu") == 0 || strcmp(name, "memory") == 0;
}

/* Whether the amount is a multiple of the size of a page, with which the name ends. */
static bool is_of_whole_pages(const char *name, const struct hfd_quantity *amount) {
        struct hfd_quantity page;

        if (hfd_quantity_parse(name + strlen(PAGES), &page) || page.negative ||
            hfd_quantity_is_zero(&page) || !hfd_quantity_is_whole(&page))
                return false;
        return (amount->whole + (amount->nano > 0)) % (page.whole + (page.nano > 0)) == 0;
}

/* amount, field: as in validate_amount. */
static void refuse_parts_of_pages(const struct hf__json *amount, const char *field,
                                  struct hfd_causes *causes) {
        const struct hfd_quantity quantity = hfd_quantity_of_json(amount);
        const char *name = hf__json_key(amount);
        char text[HFD_QUANTITY_TEXT_MAX], detail[400];

        if (!hf__text_begins_with(name, PAGES) || is_of_whole_pages(name, &quantity))
                return;
        hfd_quantity_format(&quantity, text);
        (void)snprintf(detail, sizeof detail, "%s is not positive integer multiple of %.253s", text,
                       name);
        hfd_cause_invalid_quantity(causes, field, &quantity, detail);
}

static void refuse_pages_alone(const struct kinds *kinds, const char *field,
                               struct hfd_causes *causes) {
        if (kinds->pages && !kinds->compute)
                hfd_cause_forbidden(causes, field, "HugePages require cpu or memory");
}

/*
 * A request for a resource is not more than its limit. Some resources cannot be promised to more
 * containers than can use them at once ("non overcommitable", such as hugepages): they need a limit
 * that is equal to the request. limit NULL: there is none. field: the path of resources.
 */
static void validate_request(const char *name, const struct hf__json *request,
                             const struct hf__json *limit, const char *field,
                             struct hfd_causes *causes) {
        const struct hfd_quantity wanted = hfd_quantity_of_json(request),
                                  most = hfd_quantity_of_json(limit);
        char path[HFD_FIELD_PATH_MAX], text[HFD_QUANTITY_TEXT_MAX], detail[400];
        bool may_differ = hfd_resource_name_may_overcommit(name);

        if (!limit) {
                if (!may_differ)
                        hfd_cause_required(causes, hfd_field_path(path, field, "limits"),
                                           "Limit must be set for non overcommitable resources");
                return;
        }
        int order = hfd_quantity_compare(&wanted, &most);
        if (order == 0 || (may_differ && order < 0))
                return;
        hfd_quantity_format(&most, text);
        (void)snprintf(detail, sizeof detail, "must be %s %.253s limit of %s",
                       may_differ ? "less than or equal to" : "equal to", name, text);
        hfd_cause_invalid_quantity(causes, hfd_field_path(path, field, "requests"), &wanted,
                                   detail);
}

/* Limits first, then requests: the order of Kubernetes' causes. */
static void validate_amounts(const struct hf__json *resources, const char *field,
                             struct hfd_causes *causes) {
        static const char *const maps[] = {"limits", "requests"};
        const struct hf__json *limits = hf__json_get(resources, "limits");
        struct hf__json_index by_name;
        struct kinds kinds = {0};
        char path[HFD_FIELD_PATH_MAX];

        bool is_indexed = hfd_causes_check(causes, hf__json_index_init(&by_name, limits, NULL));
        for (size_t i = 0; i < 2 && is_indexed; i++)
                for (const struct hf__json *m = hf__json_first(hf__json_get(resources, maps[i])); m;
                     m = hf__json_next(m)) {
                        const char *name = hf__json_key(m);
                        struct hf__json_index_entry *limit = hf__json_index_find(&by_name, name);
                        (void)snprintf(path, sizeof path, "%s.%s[%s]", field, maps[i], name);
                        validate_amount(m, path, &kinds, causes);
                        if (i == 1)
                                validate_request(name, m, limit ? limit->item : NULL, field,
                                                 causes);
                        refuse_parts_of_pages(m, path, causes);
                }
        hf__json_index_done(&by_name);
        refuse_pages_alone(&kinds, field, causes);
}

/* kube-apiserver checks the overhead as if it were the limits of a container, and so its causes
 * have the path of limits. */
void hfd_overhead_validate(const struct hf__json *overhead, const char *field,
                           struct hfd_causes *causes) {
        struct kinds kinds = {0};
        char path[HFD_FIELD_PATH_MAX];

        for (const struct hf__json *m = hf__json_first(overhead); m; m = hf__json_next(m)) {
                (void)snprintf(path, sizeof path, "%s.limits[%s]", field, hf__json_key(m));
                validate_amount(m, path, &kinds, causes);
                refuse_parts_of_pages(m, path, causes);
        }
        refuse_pages_alone(&kinds, field, causes);
}

/* ---- claims for devices ---- */

/* names: of the claims of the pod. The cause lists them, each one once; those beyond a limit are
 * left out. */
static void refuse_unknown(const char *name, const struct hf__json_index *names, const char *field,
                           struct hfd_causes *causes) {
        static const char must[] = "must be one of the names in pod.spec.resourceClaims";
        struct hf__strbuf text = {0};
        char quoted[300];
        size_t n = 0;

        if (causes->n == HFD_CAUSES_MAX)
                return; /* the cause would be dropped, and the pod may have many claims */
        hfd_quote(name, quoted, sizeof quoted);
        hf__strbuf_printf(&text, "Not found: %s: %s", quoted, must);
        for (size_t i = 0; i < names->n && text.n < sizeof quoted + NAMES_SHOWN_MAX; i++) {
                const char *own = names->entries[i].text;
                if (!*own || (i > 0 && strcmp(own, names->entries[i - 1].text) == 0))
                        continue;
                hf__strbuf_printf(&text, "%s%s", n++ == 0 ? ": " : ", ", own);
        }
        if (n == 0)
                hf__strbuf_puts(&text, " which is empty");
        hfd_cause_add(causes, "FieldValueNotFound", field,
                      hfd_causes_check(causes, text.error) ? text.data : "");
        hf__strbuf_done(&text);
}

/* What a container uses: "CLAIM", or "CLAIM/REQUEST" if it uses a part of the claim. */
static int print_use(const struct hf__json *claim, struct hf__strbuf *ret_use) {
        const char *request = hfd_text_of(claim, "request");

        hf__strbuf_printf(ret_use, "%s%s%s", hfd_text_of(claim, "name"), *request ? "/" : "",
                          request);
        return ret_use->error;
}

/* Appends a text for each claim, and counts a NULL array as out of memory. 0 or -ENOMEM. */
static int append_uses(struct hf__json *uses, const struct hf__json *claims) {
        int r = uses ? 0 : -ENOMEM;

        for (const struct hf__json *m = hf__json_first(claims); m && r == 0; m = hf__json_next(m)) {
                struct hf__strbuf use = {0};
                r = print_use(m, &use);
                if (r == 0)
                        r = hf__json_append_string(uses, use.data);
                hf__strbuf_done(&use);
        }
        return r;
}

/* Indexes of the claims of a container, to find an earlier one that is equal. */
struct uses {
        struct hf__json_index by_use;  /* what print_use prints */
        struct hf__json_index by_name; /* of the claim */
};

/* A container uses a claim once as a whole, or several of its requests, each of them once. field:
 * the path of the element, which is the one at `position`. */
static void refuse_used(const struct hf__json *claim, const struct uses *uses, size_t position,
                        const char *field, struct hfd_causes *causes) {
        const char *name = hfd_text_of(claim, "name");
        bool whole = !*hfd_text_of(claim, "request");
        char path[HFD_FIELD_PATH_MAX];
        struct hf__strbuf use = {0};

        if (hfd_is_repeated(&uses->by_use, name, position)) {
                hfd_cause_duplicate_text(causes, field, name);
                return;
        }
        if (!whole)
                hfd_dns_label_validate(hfd_text_of(claim, "request"),
                                       hfd_field_path(path, field, "request"), causes);
        if (hfd_causes_check(causes, print_use(claim, &use)) &&
            hfd_is_repeated(whole ? &uses->by_name : &uses->by_use, use.data, position))
                hfd_cause_duplicate_text(causes, field, use.data);
        hf__strbuf_done(&use);
}

/* names: of the claims of the pod. As in kube-apiserver, the causes about the name have the path of
 * the element. */
static void validate_claims(const struct hf__json *claims, const struct hf__json_index *names,
                            const char *field, struct hfd_causes *causes) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *texts = hf__json_array();
        struct uses uses = {0};
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;
        int r = append_uses(texts, claims);

        if (r == 0)
                r = hf__json_index_init(&uses.by_use, texts, NULL);
        if (r == 0)
                r = hf__json_index_init(&uses.by_name, claims, "name");
        if (hfd_causes_check(causes, r))
                for (const struct hf__json *m = hf__json_first(claims); m;
                     m = hf__json_next(m), i++) {
                        const char *name = hfd_text_of(m, "name");
                        hfd_field_index(path, field, i);
                        if (!*name) {
                                hfd_cause_required(causes, path, "");
                                continue;
                        }
                        refuse_used(m, &uses, i, path, causes);
                        if (!hf__json_index_find(names, name))
                                refuse_unknown(name, names, path, causes);
                }
        hf__json_index_done(&uses.by_use);
        hf__json_index_done(&uses.by_name);
}

void hfd_container_resources_validate(const struct hf__json *resources,
                                      const struct hf__json_index *claims, const char *field,
                                      struct hfd_causes *causes) {
        const struct hf__json *used = hf__json_get(resources, "claims");
        char path[HFD_FIELD_PATH_MAX];

        validate_amounts(resources, field, causes);
        if (hf__json_first(used))
                validate_claims(used, claims, hfd_field_path(path, field, "claims"), causes);
}

/* ---- resizes ---- */

/* As in kube-apiserver, the causes have the path of the list, except the cause for a repeated
 * element. */
void hfd_resize_policy_validate(const struct hf__json *list, const char *field, bool never_restarts,
                                struct hfd_causes *causes) {
        struct hf__json_index names;
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (hfd_causes_check(causes, hf__json_index_init_texts(&names, list, "resourceName")))
                for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m)) {
                        const char *name = hfd_text_of(m, "resourceName"),
                                   *policy = hfd_text_of(m, "restartPolicy");
                        if (hfd_is_repeated(&names, name, i))
                                hfd_cause_duplicate_text(causes, hfd_field_index(path, field, i),
                                                         name);
                        i++;
                        if (!*name)
                                hfd_cause_required(causes, field, "");
                        else if (strcmp(name, "cpu") != 0 && strcmp(name, "memory") != 0)
                                hfd_cause_unsupported_text(causes, field, name,
                                                           "\"cpu\", \"memory\"");
                        if (!*policy)
                                hfd_cause_required(causes, field, "");
                        else if (strcmp(policy, "NotRequired") != 0 &&
                                 strcmp(policy, "RestartContainer") != 0)
                                hfd_cause_unsupported_text(causes, field, policy,
                                                           "\"NotRequired\", "
                                                           "\"RestartContainer\"");
                        if (never_restarts && strcmp(policy, "NotRequired") != 0)
                                hfd_cause_invalid_text(causes, field, policy,
                                                       "must be 'NotRequired' when pod "
                                                       "`restartPolicy` is 'Never'");
                }
        hf__json_index_done(&names);
}
