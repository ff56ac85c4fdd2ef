/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raw values: parts of a value that stay text. The functions are declared in json.h.
 *
 * Invariant: a raw value is a cJSON item of the type cJSON_Raw, with valuestring as its text. cJSON
 * copies and frees such an item like a string. json_print.c prints the text as it is, so the text
 * must be valid JSON.
 */
#include "base/json.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/json_item.h"

int hf__json_set_raw(struct hf__json *json, const char *text, size_t n) {
        cJSON *c = hf__json_item(json);
        char *copy = cJSON_malloc(n + 1);

        assert(!c->child && (c->valuestring || cJSON_IsNull(c)));
        if (!copy)
                return -ENOMEM;
        memcpy(copy, text, n);
        copy[n] = '\0';
        if (c->valuestring)
                cJSON_free(c->valuestring);
        c->valuestring = copy;
        c->type = (c->type & ~0xff) | cJSON_Raw;
        return 0;
}

const char *hf__json_raw(const struct hf__json *json) {
        const cJSON *c = hf__json_item(json);

        return hf__json_item_is(c, cJSON_Raw) ? c->valuestring : NULL;
}

int hf__json_expand(struct hf__json *object, const char *path) {
        struct hf__json *member = hf__json_path(object, path), *value;
        const char *text = hf__json_raw(member);

        if (!text)
                return 0;
        int r = hf__json_parse(text, strlen(text), &value, NULL);
        return r == 0 ? hf__json_set(object, path, value) : r;
}
