/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a ResourceQuota decides about a create, and what a recount writes.
 *
 * Invariants: messages are those of kube-apiserver, as clients show them. A quota whose status.used
 * is unknown refuses the create: its limit must not be exceeded because a recount is late.
 */
#include "server/quota/quota.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/schema/quantity.h"

#define COUNT "count/"

/* ---- names ---- */

/* The kinds of the core group that a quota may count by their plural alone. */
static const char *const plain_names[] = {
        "configmaps",     "persistentvolumeclaims",
        "pods",           "replicationcontrollers",
        "resourcequotas", "secrets",
        "services",
};

static bool has_plain_name(const char *group, const char *plural) {
        for (size_t i = 0; !*group && i < sizeof plain_names / sizeof plain_names[0]; i++)
                if (strcmp(plain_names[i], plural) == 0)
                        return true;
        return false;
}

static bool is_ignored(const char *group, const char *plural) {
        return strcmp(plural, "events") == 0 && (!*group || strcmp(group, "events.k8s.io") == 0);
}

bool hfd_quota_names(const char *group, const char *plural, struct hfd_quota_names *ret_names) {
        char counted[HFD_QUOTA_NAME_MAX];

        *ret_names = (struct hfd_quota_names){0};
        int n = snprintf(counted, sizeof counted, COUNT "%s%s%s", plural, *group ? "." : "", group);
        if (is_ignored(group, plural) || n < 0 || (size_t)n >= sizeof counted)
                return false;
        bool plain = has_plain_name(group, plural), first = plain && strcmp(plural, counted) < 0;
        if (plain)
                (void)snprintf(ret_names->of[first ? 0 : 1], HFD_QUOTA_NAME_MAX, "%s", plural);
        (void)snprintf(ret_names->of[first ? 1 : 0], HFD_QUOTA_NAME_MAX, "%s", counted);
        return true;
}

/* Sets group and plural to the kind that a name counts. False: the name counts no objects, but for
 * example processor time. */
static bool kind_of(const char *name, char group[HFD_QUOTA_NAME_MAX],
                    char plural[HFD_QUOTA_NAME_MAX]) {
        bool plain = has_plain_name("", name);

        if (!plain && strncmp(name, COUNT, strlen(COUNT)) != 0)
                return false;
        int n = snprintf(plural, HFD_QUOTA_NAME_MAX, "%s", plain ? name : name + strlen(COUNT));
        if (n < 0 || n >= HFD_QUOTA_NAME_MAX)
                return false;
        char *dot = strchr(plural, '.');
        (void)snprintf(group, HFD_QUOTA_NAME_MAX, "%s", dot ? dot + 1 : "");
        if (dot)
                *dot = '\0';
        return true;
}

static bool has_scopes(const struct hf__json *quota) {
        return hf__json_first(hf__json_path(quota, "spec.scopes")) ||
               hf__json_first(hf__json_path(quota, "spec.scopeSelector.matchExpressions"));
}

/* ---- a create ---- */

/* One name under which the quota counts the kind. */
struct limit {
        const char *name;
        struct hfd_quantity hard, used;
        bool known;    /* status.used has it */
        bool exceeded; /* one more object would be too many */
};

/* False: the text is not a quantity. */
static bool read_quantity(const struct hf__json *map, const char *name,
                          struct hfd_quantity *ret_quantity) {
        const char *text = hf__json_text(hf__json_get(map, name));

        return text && hfd_quantity_parse(text, ret_quantity) == NULL;
}

/* Returns how many of the names status.hard has. */
static size_t find_limits(const struct hf__json *quota, const struct hfd_quota_names *names,
                          struct limit limits[2]) {
        const struct hf__json *hard = hf__json_path(quota, "status.hard"),
                              *used = hf__json_path(quota, "status.used");
        size_t n = 0;

        for (size_t i = 0; i < 2; i++) {
                struct limit *limit = &limits[n];
                *limit = (struct limit){.name = names->of[i]};
                if (!*limit->name || !read_quantity(hard, limit->name, &limit->hard))
                        continue;
                limit->known =
                        read_quantity(used, limit->name, &limit->used) && !limit->used.negative;
                struct hfd_quantity next = limit->used;
                if (limit->known)
                        hfd_quantity_increment(&next);
                limit->exceeded = hfd_quantity_compare(&next, &limit->hard) > 0;
                n++;
        }
        return n;
}

static bool names_in_spec(const struct hf__json *quota, const struct hfd_quota_names *names) {
        const struct hf__json *hard = hf__json_path(quota, "spec.hard");

        return (*names->of[0] && hf__json_get(hard, names->of[0])) ||
               (*names->of[1] && hf__json_get(hard, names->of[1]));
}

static const char *name_of(const struct hf__json *quota) {
        const char *name = hf__json_string(quota, "metadata.name");

        return name ? name : "";
}

static void put_unknown(const struct hf__json *quota, const struct limit *limits, size_t n,
                        struct hf__strbuf *why) {
        hf__strbuf_printf(why, "status unknown for quota: %s, resources: ", name_of(quota));
        for (size_t i = 0; i < n; i++)
                hf__strbuf_printf(why, "%s%s", i ? "," : "", limits[i].name);
}

/* The parts of the message about exceeded limits. */
enum part { REQUESTED, USED, LIMITED };

static void put_part(const struct limit *limits, size_t n, enum part part, struct hf__strbuf *why) {
        static const char *const words[] = {", requested: ", ", used: ", ", limited: "};
        const struct hfd_quantity one = hfd_quantity_of(1);
        const char *comma = "";

        hf__strbuf_puts(why, words[part]);
        for (size_t i = 0; i < n; i++) {
                char text[HFD_QUANTITY_TEXT_MAX];
                if (!limits[i].exceeded)
                        continue;
                if (part == REQUESTED)
                        hfd_quantity_format(&one, text);
                else
                        hfd_quantity_format(part == USED ? &limits[i].used : &limits[i].hard, text);
                hf__strbuf_printf(why, "%s%s=%s", comma, limits[i].name, text);
                comma = ",";
        }
}

static void put_exceeded(const struct hf__json *quota, const struct limit *limits, size_t n,
                         struct hf__strbuf *why) {
        hf__strbuf_printf(why, "exceeded quota: %s", name_of(quota));
        put_part(limits, n, REQUESTED, why);
        put_part(limits, n, USED, why);
        put_part(limits, n, LIMITED, why);
}

static int write_used(struct hf__json *quota, struct limit *limits, size_t n) {
        struct hf__json *used = hf__json_path(quota, "status.used");
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++) {
                char text[HFD_QUANTITY_TEXT_MAX];
                hfd_quantity_increment(&limits[i].used);
                hfd_quantity_format(&limits[i].used, text);
                r = hf__json_put_string(used, limits[i].name, text);
        }
        return r;
}

int hfd_quota_charge(struct hf__json *quota, const struct hfd_quota_names *names,
                     enum hfd_quota_verdict *ret_verdict, struct hf__strbuf *why) {
        struct limit limits[2];
        bool known = true, exceeded = false;

        *ret_verdict = HFD_QUOTA_UNCOUNTED;
        if (has_scopes(quota))
                return 0;
        size_t n = find_limits(quota, names, limits);
        if (n == 0) {
                if (names_in_spec(quota, names))
                        *ret_verdict = HFD_QUOTA_PENDING;
                return 0;
        }
        for (size_t i = 0; i < n; i++) {
                known = known && limits[i].known;
                exceeded = exceeded || limits[i].exceeded;
        }
        if (known && !exceeded) {
                *ret_verdict = HFD_QUOTA_CHARGED;
                return write_used(quota, limits, n);
        }
        *ret_verdict = HFD_QUOTA_REFUSED;
        if (!known)
                put_unknown(quota, limits, n, why);
        else
                put_exceeded(quota, limits, n, why);
        return why->error != 0 ? -ENOMEM : 0;
}

/* ---- a recount ---- */

/*
 * Adds an entry for one name in spec.hard to used. A name that counts no objects, such as
 * requests.cpu, gets 0. If the kind is not served, a plain name such as "pods" also gets 0, because
 * there are no such objects; a name with "count/" gets no entry, because nothing is known about the
 * kind. Events get no entry.
 */
static int add_used(struct hf__json *used, const char *name, bool scoped, hfd_quota_count_fn count,
                    void *ctx) {
        char group[HFD_QUOTA_NAME_MAX], plural[HFD_QUOTA_NAME_MAX], text[HFD_QUANTITY_TEXT_MAX];
        bool counted = kind_of(name, group, plural), served = true;
        uint64_t n = 0;
        int r = 0;

        if (counted && is_ignored(group, plural))
                return 0;
        if (counted)
                r = count(ctx, group, plural, &n, &served);
        if (r != 0)
                return r;
        if (!served && strchr(name, '/'))
                return 0;
        struct hfd_quantity quantity = hfd_quantity_of(scoped ? 0 : n);
        hfd_quantity_format(&quantity, text);
        return hf__json_add_string(used, name, text);
}

int hfd_quota_recount(struct hf__json *quota, hfd_quota_count_fn count, void *ctx,
                      bool *ret_changed) {
        const struct hf__json *spec = hf__json_path(quota, "spec.hard");
        struct hf__json *used = hf__json_object(), *status = hf__json_object();
        bool scoped = has_scopes(quota);
        int r = used && status ? 0 : -ENOMEM;

        for (const struct hf__json *m = hf__json_first(spec); m && r == 0; m = hf__json_next(m))
                r = add_used(used, hf__json_key(m), scoped, count, ctx);
        if (r == 0 && spec)
                r = hf__json_add(status, "hard", hf__json_dup(spec));
        if (r != 0) {
                hf__json_free(used);
                hf__json_free(status);
                return r;
        }
        r = hf__json_add(status, "used", used); /* it frees used if it fails */
        *ret_changed = r == 0 && !hf__json_equal(hf__json_get(quota, "status"), status);
        if (!*ret_changed) {
                hf__json_free(status);
                return r;
        }
        return hf__json_set(quota, "status", status);
}
