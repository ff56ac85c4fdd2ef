/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the elements of a list that have the same values of two members as an earlier element.
 *
 * Invariant: no element is compared with all others, because clients choose how many there are. So
 * each pair becomes one text, and an index of the texts finds the first element with it.
 */
#include "server/resources/workloads/rules/nodes/element_pairs.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/causes.h"
#include "server/resources/go_value.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/schema/schema.h"

int hfd_element_pairs_init(struct hfd_element_pairs *pairs, const struct hf__json *list,
                           const char *first, const char *second) {
        struct hf__strbuf text = {0};
        int r;

        *pairs = (struct hfd_element_pairs){.texts = hf__json_array()};
        r = pairs->texts ? 0 : -ENOMEM;
        for (const struct hf__json *m = hf__json_first(list); m && r == 0; m = hf__json_next(m)) {
                const char *a = hfd_text_of(m, first);
                hf__strbuf_reset(&text);
                /* The length says where the first value ends, whatever bytes it has. */
                hf__strbuf_printf(&text, "%zu:%s%s", strlen(a), a, hfd_text_of(m, second));
                r = text.error ? text.error : hf__json_append_string(pairs->texts, text.data);
        }
        hf__strbuf_done(&text);
        if (r == 0)
                r = hf__json_index_init(&pairs->by_text, pairs->texts, NULL);
        if (r != 0)
                pairs->texts = hf__json_free(pairs->texts);
        pairs->next = hf__json_first(pairs->texts);
        return r;
}

void hfd_element_pairs_done(struct hfd_element_pairs *pairs) {
        hf__json_index_done(&pairs->by_text);
        hf__json_free(pairs->texts);
}

bool hfd_element_pairs_repeat(struct hfd_element_pairs *pairs) {
        const struct hf__json_index_entry *first =
                hf__json_index_find(&pairs->by_text, hf__json_text(pairs->next));
        bool is_repeated = first && first->position < pairs->n_seen;

        pairs->n_seen++;
        pairs->next = hf__json_next(pairs->next);
        return is_repeated;
}

void hfd_element_refuse_repeated(const struct hfd_schema *schema, const struct hf__json *value,
                                 const char *field, const char *detail, struct hfd_causes *causes) {
        struct hf__strbuf shown = {0}, text = {0};

        hfd_go_fields_print(&shown, schema->items, value);
        hf__strbuf_printf(&text, "Duplicate value: %.300s%s%s", shown.data ? shown.data : "null",
                          detail ? ": " : "", detail ? detail : "");
        bool is_shown =
                hfd_causes_check(causes, shown.error) && hfd_causes_check(causes, text.error);
        hfd_cause_add(causes, "FieldValueDuplicate", field,
                      is_shown ? text.data : "Duplicate value");
        hf__strbuf_done(&shown);
        hf__strbuf_done(&text);
}
