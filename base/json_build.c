/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds and changes JSON values. The functions are declared in json.h.
 *
 * Invariants: a function that takes ownership of a value frees it when it fails, so that no caller
 * has to. A member that replaces another one gets its position, so that an update does not change
 * the order of the members.
 */
#include "base/json.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/json_item.h"
#include "base/json_number.h"

struct hf__json *hf__json_object(void) {
        return hf__json_of(cJSON_CreateObject());
}
struct hf__json *hf__json_array(void) {
        return hf__json_of(cJSON_CreateArray());
}

/* Sets the member whose key is the n bytes at key. Takes ownership of value, also on failure. A
 * NULL value means that its constructor was out of memory. */
static int put_member(cJSON *object, const char *key, size_t n, cJSON *value) {
        char *copy = value ? cJSON_malloc(n + 1) : NULL;

        assert(cJSON_IsObject(object));
        if (!copy) {
                cJSON_Delete(value);
                return -ENOMEM;
        }
        memcpy(copy, key, n);
        copy[n] = '\0';
        /* Replace at the same position, so that the order of the members does not change. */
        cJSON *old = hf__json_find_member(object, copy, n);
        if (old) {
                if (!(value->type & cJSON_StringIsConst))
                        cJSON_free(value->string);
                value->string = copy;
                value->type &= ~cJSON_StringIsConst; /* cJSON must free the copy with the item */
                (void)cJSON_ReplaceItemViaPointer(object, old, value);
                return 0;
        }
        bool added = cJSON_AddItemToObject(object, copy, value);
        cJSON_free(copy);
        if (!added)
                cJSON_Delete(value);
        return added ? 0 : -ENOMEM;
}

int hf__json_set(struct hf__json *object, const char *path, struct hf__json *value) {
        cJSON *c = hf__json_item(object);

        for (;;) {
                size_t n = hf__json_key_length(path);
                if (!cJSON_IsObject(c)) {
                        cJSON_Delete(hf__json_item(value));
                        return -EINVAL;
                }
                if (!path[n])
                        return put_member(c, path, n, hf__json_item(value));
                cJSON *inner = hf__json_find_member(c, path, n);
                if (!inner) {
                        inner = cJSON_CreateObject();
                        int r = put_member(c, path, n, inner);
                        if (r < 0) {
                                cJSON_Delete(hf__json_item(value));
                                return r;
                        }
                }
                c = inner;
                path += n + 1;
        }
}

int hf__json_put(struct hf__json *object, const char *key, struct hf__json *value) {
        if (!hf__json_is_object(object)) {
                cJSON_Delete(hf__json_item(value));
                return -EINVAL;
        }
        return put_member(hf__json_item(object), key, strlen(key), hf__json_item(value));
}

int hf__json_put_string(struct hf__json *object, const char *key, const char *value) {
        return hf__json_put(object, key, hf__json_of(cJSON_CreateString(value)));
}

/* Takes constant time, unlike cJSON's functions that take a key or an index. */
struct hf__json *hf__json_detach(struct hf__json *container, struct hf__json *m) {
        return hf__json_of(cJSON_DetachItemViaPointer(hf__json_item(container), hf__json_item(m)));
}

int hf__json_replace(struct hf__json *container, struct hf__json *m, struct hf__json *value) {
        cJSON *old = hf__json_item(m), *c = hf__json_item(value);

        if (!c)
                return -ENOMEM;
        /* The new value takes over the key of the old one, so that nothing is allocated. */
        if (!(c->type & cJSON_StringIsConst))
                cJSON_free(c->string);
        c->string = old->string;
        c->type = (c->type & ~cJSON_StringIsConst) | (old->type & cJSON_StringIsConst);
        old->string = NULL;
        (void)cJSON_ReplaceItemViaPointer(hf__json_item(container), old, c);
        return 0;
}

int hf__json_set_text(struct hf__json *string, const char *text) {
        assert(hf__json_is_string(string));
        size_t n = strlen(text) + 1;
        char *copy = cJSON_malloc(n);
        if (!copy)
                return -ENOMEM;
        memcpy(copy, text, n);
        cJSON_free(hf__json_item(string)->valuestring);
        hf__json_item(string)->valuestring = copy;
        return 0;
}

/* Does not use cJSON_InsertItemInArray, which takes an index and searches the list for it. */
int hf__json_insert(struct hf__json *array, struct hf__json *before, struct hf__json *value) {
        cJSON *a = hf__json_item(array), *next = hf__json_item(before), *c = hf__json_item(value);

        assert(!before || hf__json_is_array(array));
        if (!next || !c)
                return hf__json_append(array, value);
        /* In cJSON's lists the first item's prev is the last item, and the last item's next is
         * NULL. */
        c->next = next;
        c->prev = next->prev;
        next->prev = c;
        if (a->child == next)
                a->child = c;
        else
                c->prev->next = c;
        return 0;
}

/* Does not search for the key: building a large object member by member would take quadratic
 * time. */
int hf__json_add(struct hf__json *object, const char *key, struct hf__json *value) {
        assert(!object || hf__json_is_object(object));
        if (!value)
                return -ENOMEM;
        if (cJSON_AddItemToObject(hf__json_item(object), key, hf__json_item(value)))
                return 0;
        cJSON_Delete(hf__json_item(value));
        return -ENOMEM;
}

int hf__json_add_string(struct hf__json *object, const char *key, const char *value) {
        return hf__json_add(object, key, hf__json_of(cJSON_CreateString(value)));
}

void hf__json_drop(struct hf__json *object, const char *key) {
        cJSON *m = hf__json_find_member(hf__json_item(object), key, strlen(key));
        if (m)
                cJSON_Delete(cJSON_DetachItemViaPointer(hf__json_item(object), m));
}

int hf__json_set_string(struct hf__json *object, const char *path, const char *value) {
        return hf__json_set(object, path, hf__json_of(cJSON_CreateString(value)));
}

int hf__json_set_i64(struct hf__json *object, const char *path, int64_t value) {
        return hf__json_set(object, path, hf__json_number_new(value));
}

int hf__json_set_bool(struct hf__json *object, const char *path, bool value) {
        return hf__json_set(object, path, hf__json_of(cJSON_CreateBool(value)));
}

int hf__json_append(struct hf__json *array, struct hf__json *value) {
        if (!value)
                return -ENOMEM;
        if (!hf__json_is_array(array)) {
                cJSON_Delete(hf__json_item(value));
                return -EINVAL;
        }
        if (cJSON_AddItemToArray(hf__json_item(array), hf__json_item(value)))
                return 0;
        cJSON_Delete(hf__json_item(value));
        return -ENOMEM;
}

int hf__json_append_string(struct hf__json *array, const char *value) {
        return hf__json_append(array, hf__json_of(cJSON_CreateString(value)));
}

/* A parent that becomes empty stays, because only the schema of the kind says whether an empty
 * object means the same as a missing one. */
void hf__json_remove(struct hf__json *object, const char *path) {
        cJSON *c = hf__json_item(object);

        for (;;) {
                size_t n = hf__json_key_length(path);
                cJSON *m = hf__json_find_member(c, path, n);
                if (!m)
                        return;
                if (!path[n]) {
                        cJSON_Delete(cJSON_DetachItemViaPointer(c, m));
                        return;
                }
                c = m;
                path += n + 1;
        }
}
