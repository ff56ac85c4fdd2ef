/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the path to a place in a value, for messages. The recursion is as deep as the value is
 * nested, which the JSON parser limits.
 *
 * Invariant: of a key that a client has chosen only printable ASCII is written, because a path may
 * become part of a header.
 */
#include "server/schema/place.h"

#include <string.h>

#include "base/strbuf.h"
#include "server/schema/schema.h"

#define KEY_MAX 120 /* bytes of a key that are shown */

/* Replaces all characters but printable ASCII, because a newline would begin another header.
 * Replaces quotes and backslashes too, because the path is printed within quotes. */
static void put_key(struct hf__strbuf *out, const char *key) {
        for (size_t i = 0; key[i] && i < KEY_MAX; i++) {
                bool plain = key[i] >= ' ' && key[i] <= '~' && key[i] != '"' && key[i] != '\\';
                hf__strbuf_putc(out, plain ? key[i] : '?');
        }
}

void hfd_place_put_path(const struct hfd_place *place, struct hf__strbuf *out) {
        if (!place->up)
                return;
        hfd_place_put_path(place->up, out);
        if (!place->key) {
                hf__strbuf_printf(out, "[%zu]", place->index);
                return;
        }
        if (place->up->up)
                hf__strbuf_putc(out, '.');
        put_key(out, place->key);
}

/* Writes the names of the structs that Go embeds in the struct of the field, and that have the
 * field. TypeMeta, which is not in protobuf, has the two fields that no message contains. */
static void put_embedded(const struct hfd_place *place, struct hf__strbuf *out) {
        const struct hfd_schema_field *field = hfd_schema_field(place->in, place->key);
        const char *names = place->in->embedded;

        if (field && field->embedded_tag != 0 && names) {
                bool is_inner = field->embedded_tag >= HFD_EMBEDDED_MAX;
                size_t n = is_inner ? strlen(names) : strcspn(names, ".");
                hf__strbuf_printf(out, "%.*s.", (int)n, names);
        } else if (field && field->protobuf_tag == 0 &&
                   (strcmp(field->name, "kind") == 0 || strcmp(field->name, "apiVersion") == 0)) {
                hf__strbuf_puts(out, "TypeMeta.");
        }
}

void hfd_place_put_fields(const struct hfd_place *place, struct hf__strbuf *out) {
        if (!place->up)
                return;
        hfd_place_put_fields(place->up, out);
        if (!place->in)
                return;
        if (hfd_place_struct(place->up))
                hf__strbuf_putc(out, '.');
        put_embedded(place, out);
        hf__strbuf_puts(out, place->key); /* the name of a field is from the schema, not the body */
}

const struct hfd_schema *hfd_place_struct(const struct hfd_place *place) {
        for (; place; place = place->up)
                if (place->in)
                        return place->in;
        return NULL;
}
