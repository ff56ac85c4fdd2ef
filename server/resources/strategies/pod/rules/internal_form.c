/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints a part of a pod as kube-apiserver shows it in a cause: the JSON of its internal Go type,
 * whose members have no JSON names.
 *
 * Invariant: the members are in the order of the Go type, and absent ones are shown too, because
 * Go prints them.
 */
#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"

static void print(const struct hf__json *value, const struct hfd_internal_member *members,
                  struct hf__strbuf *out);

static void print_list(const struct hf__json *list, const struct hfd_internal_member *members,
                       struct hf__strbuf *out) {
        hf__strbuf_putc(out, '[');
        for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m)) {
                if (m != hf__json_first(list))
                        hf__strbuf_putc(out, ',');
                print(m, members, out);
        }
        hf__strbuf_putc(out, ']');
}

/* print and print_list call each other. The tables are not recursive, so they limit the depth. */
static void print(const struct hf__json *value, const struct hfd_internal_member *members,
                  struct hf__strbuf *out) {
        if (!value) {
                hf__strbuf_puts(out, "null");
                return;
        }
        if (hf__json_is_array(value)) {
                print_list(value, members, out);
                return;
        }
        for (const struct hfd_internal_member *m = members; m->name; m++) {
                const struct hf__json *of_member = hf__json_get(value, m->name);
                hf__strbuf_printf(out, "%s\"%s\":", m == members ? "{" : ",", m->go_name);
                if (!of_member && m->is_text)
                        hf__strbuf_puts(out, "\"\"");
                else if (!of_member || m->members)
                        print(of_member, m->members, out);
                else
                        hf__json_print(of_member, out);
        }
        hf__strbuf_putc(out, '}');
}

void hfd_internal_refuse(const struct hf__json *value, const struct hfd_internal_member *members,
                         const char *field, const char *detail, struct hfd_causes *causes) {
        struct hf__strbuf shown = {0};

        if (causes->n == HFD_CAUSES_MAX)
                return; /* the cause would be dropped; a list may refuse a large object often */
        print(value, members, &shown);
        hfd_cause_invalid(causes, field, hfd_causes_check(causes, shown.error) ? shown.data : "",
                          detail);
        hf__strbuf_done(&shown);
}
