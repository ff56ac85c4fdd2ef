/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The condition Healthy of a ComponentStatus, in the words of kubectl's columns.
 *
 * Invariant: each call writes exactly one JSON value, whatever the object has, because a row has
 * one value for each column.
 */
#include "server/registry/list/cells/component_cells.h"

#include <string.h>

#include "base/json.h"

void hfd_component_put_cell(struct hf__strbuf *s, const struct hf__json *object, const char *what) {
        const struct hf__json *m = hf__json_first(hf__json_get(object, "conditions"));
        const char *text;

        while (m && !hf__json_has_text(m, "type", "Healthy"))
                m = hf__json_next(m);
        text = hf__json_string(m, what);
        if (strcmp(what, "status") == 0 && !m)
                text = "Unknown";
        else if (strcmp(what, "status") == 0)
                text = hf__json_has_text(m, "status", "True") ? "Healthy" : "Unhealthy";
        hf__strbuf_json(s, text ? text : "", text ? strlen(text) : 0);
}
