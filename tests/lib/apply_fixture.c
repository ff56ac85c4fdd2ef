/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of the tests of server-side apply. */
#include "apply_fixture.h"

#undef NDEBUG
#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/schema/common.h"

/* ---- the kind ---- */

static const char *const by_name[] = {"name", NULL};
static const char *const by_port[] = {"port", "protocol", NULL};

static const struct hfd_schema_field port_fields[] = {
        {"name", &hfd_schema_text},
        {"port", &hfd_schema_int32},
        {"protocol", &hfd_schema_text, .key_default = "TCP"},
};
static const struct hfd_schema port = {HFD_STRUCT("io.example.v1.Port", port_fields)};
static const struct hfd_schema_field item_fields[] = {
        {"labels", &hfd_schema_map_of_texts},
        {"name", &hfd_schema_text},
        {"value", &hfd_schema_text},
};
static const struct hfd_schema item = {HFD_STRUCT("io.example.v1.Item", item_fields)};
static const struct hfd_schema whole_item = {HFD_STRUCT("io.example.v1.WholeItem", item_fields),
                                             .atomic = true};
static const struct hfd_schema atomic_map = {.type = HFD_SCHEMA_MAP,
                                             .items = &hfd_schema_text,
                                             .atomic = true};
static const struct hfd_schema map_of_items = {.type = HFD_SCHEMA_MAP, .items = &item};
static const struct hfd_schema_field spec_fields[] = {
        {"atomicList", &hfd_schema_list_of_texts},
        {"atomicMap", &atomic_map},
        {"count", &hfd_schema_int32},
        {"items", HFD_LIST_OF(&item, .list_type = HFD_LIST_MAP, .list_keys = by_name)},
        {"named", &map_of_items},
        {"ports", HFD_LIST_OF(&port, .list_type = HFD_LIST_MAP, .list_keys = by_port)},
        {"selector", &whole_item},
        {"set", HFD_LIST_OF(&hfd_schema_text, .list_type = HFD_LIST_SET)},
        {"text", &hfd_schema_text},
        {"whole", HFD_LIST_OF(&whole_item, .list_type = HFD_LIST_MAP, .list_keys = by_name)},
        {"wild", &hfd_schema_any},
};
static const struct hfd_schema spec = {HFD_STRUCT("io.example.v1.Spec", spec_fields)};
static const struct hfd_schema_field status_fields[] = {{"phase", &hfd_schema_text}};
static const struct hfd_schema status = {HFD_STRUCT("io.example.v1.Status", status_fields)};
static const struct hfd_schema_field thing_fields[] = {
        HFD_FIELD_API_VERSION, {"data", &hfd_schema_map_of_texts},
        HFD_FIELD_KIND,        HFD_FIELD_METADATA,
        {"spec", &spec},       {"status", &status},
};
static const struct hfd_schema thing = {HFD_STRUCT("io.example.v1.Thing", thing_fields)};
const struct hfd_schema *const apply_fixture_thing = &thing;

/* ---- texts ---- */

struct hf__json *apply_fixture_parse(const char *text) {
        struct hf__json *json = NULL;
        char *copy = strdup(text);

        assert(copy);
        for (char *at = copy; *at; at++)
                *at = *at == '\'' ? '"' : *at;
        int r = hf__json_parse(copy, strlen(copy), &json, NULL);
        if (r != 0)
                fprintf(stderr, "malformed: %s\n", text);
        assert(r == 0);
        free(copy);
        return json;
}

const char *apply_fixture_print(const struct hf__json *json) {
        static char buffers[8][20000];
        static unsigned next;
        char *buffer = buffers[next++ % 8];
        struct hf__strbuf out = {0};

        hf__json_print(json, &out);
        assert(out.error == 0 && out.n < sizeof buffers[0]);
        (void)snprintf(buffer, sizeof buffers[0], "%s", out.data ? out.data : "(none)");
        hf__strbuf_done(&out);
        for (char *at = buffer; *at; at++)
                *at = *at == '"' ? '\'' : *at;
        return buffer;
}

/* ---- random objects ---- */

unsigned apply_fixture_random(uint64_t *seed, unsigned n) {
        /* xorshift64* */
        *seed ^= *seed >> 12;
        *seed ^= *seed << 25;
        *seed ^= *seed >> 27;
        return (unsigned)((*seed * 0x2545F4914F6CDD1D) >> 33) % n;
}

/* The text of a key, which belongs to the part. */
static const char *random_key(uint64_t *seed, unsigned part) {
        static const char *const keys[] = {"a", "b", "c", "d", "e"};
        static const char *const of_part[4][2] = {{"pa", "pb"},
                                                  {"qa", "qb"},
                                                  {"ra", "rb"},
                                                  {"sa", "sb"}};

        if (part == 0)
                return keys[apply_fixture_random(seed, 5)];
        return of_part[part - 1][apply_fixture_random(seed, 2)];
}

static void put_map(struct hf__strbuf *out, uint64_t *seed, unsigned part) {
        unsigned n = apply_fixture_random(seed, 4);
        bool any = false;

        hf__strbuf_putc(out, '{');
        for (unsigned i = 0; i < 5 && n > 0; i++) {
                /* Each key once, in any order: i only counts the attempts. */
                const char *key = random_key(seed, part);
                char quoted[16];
                (void)snprintf(quoted, sizeof quoted, "'%s':", key);
                const char *from = strrchr(out->data, '{');
                if (strstr(from, quoted))
                        continue;
                hf__strbuf_printf(out, "%s%s'%u'", any ? "," : "", quoted,
                                  apply_fixture_random(seed, 3));
                any = true;
                n--;
        }
        hf__strbuf_putc(out, '}');
}

/* Appends a list (or a map, if is_list is false) of elements with different names. whole: the
 * elements have no labels. */
static void put_items(struct hf__strbuf *out, uint64_t *seed, unsigned part, bool is_list,
                      bool whole) {
        char used[64] = "";
        bool any = false;

        hf__strbuf_putc(out, is_list ? '[' : '{');
        for (unsigned i = 0; i < apply_fixture_random(seed, 5); i++) {
                const char *key = random_key(seed, part);
                if (strstr(used, key))
                        continue;
                (void)strncat(used, key, sizeof used - strlen(used) - 1);
                hf__strbuf_puts(out, any ? "," : "");
                any = true;
                if (is_list)
                        hf__strbuf_printf(out, "{'name':'%s'", key);
                else
                        hf__strbuf_printf(out, "'%s':{'name':'x'", key);
                if (apply_fixture_random(seed, 2))
                        hf__strbuf_printf(out, ",'value':'%u'", apply_fixture_random(seed, 3));
                if (!whole && apply_fixture_random(seed, 2)) {
                        hf__strbuf_puts(out, ",'labels':");
                        put_map(out, seed, part);
                }
                hf__strbuf_putc(out, '}');
        }
        hf__strbuf_putc(out, is_list ? ']' : '}');
}

static void put_set(struct hf__strbuf *out, uint64_t *seed, unsigned part) {
        char used[64] = "";
        bool any = false;

        hf__strbuf_putc(out, '[');
        for (unsigned i = 0; i < apply_fixture_random(seed, 6); i++) {
                const char *key = random_key(seed, part);
                if (strstr(used, key))
                        continue;
                (void)strncat(used, key, sizeof used - strlen(used) - 1);
                hf__strbuf_printf(out, "%s'%s'", any ? "," : "", key);
                any = true;
        }
        hf__strbuf_putc(out, ']');
}

static void put_ports(struct hf__strbuf *out, uint64_t *seed, unsigned part) {
        unsigned used = 0;
        bool any = false;

        hf__strbuf_putc(out, '[');
        for (unsigned i = 0; i < apply_fixture_random(seed, 5); i++) {
                unsigned number = apply_fixture_random(seed, 3),
                         udp = apply_fixture_random(seed, 2);
                if (used & 1U << (2 * number + udp))
                        continue;
                used |= 1U << (2 * number + udp);
                hf__strbuf_printf(out, "%s{'port':%u", any ? "," : "", 10 * part + number);
                if (udp)
                        hf__strbuf_puts(out, ",'protocol':'UDP'");
                else if (apply_fixture_random(seed, 2))
                        hf__strbuf_puts(out, ",'protocol':'TCP'");
                if (apply_fixture_random(seed, 2))
                        hf__strbuf_printf(out, ",'name':'%u'", apply_fixture_random(seed, 3));
                hf__strbuf_putc(out, '}');
                any = true;
        }
        hf__strbuf_putc(out, ']');
}

/* Appends the fields that have one owner as a whole. Of the parts, only part 1 has them. */
static void put_wholes(struct hf__strbuf *out, uint64_t *seed) {
        if (apply_fixture_random(seed, 2))
                hf__strbuf_printf(out, ",'text':'%u'", apply_fixture_random(seed, 2));
        if (apply_fixture_random(seed, 2)) {
                hf__strbuf_puts(out, ",'atomicList':");
                put_set(out, seed, 0);
        }
        if (apply_fixture_random(seed, 2)) {
                hf__strbuf_puts(out, ",'atomicMap':");
                put_map(out, seed, 0);
        }
        if (apply_fixture_random(seed, 2))
                hf__strbuf_printf(out, ",'selector':{'name':'%u'}", apply_fixture_random(seed, 3));
}

struct hf__json *apply_fixture_random_thing(uint64_t *seed, unsigned part) {
        struct hf__strbuf out = {0};
        struct hf__json *json;

        hf__strbuf_puts(&out, "{'apiVersion':'v1','kind':'Thing','metadata':{'name':'t','labels':");
        put_map(&out, seed, part);
        hf__strbuf_puts(&out, "},'data':");
        put_map(&out, seed, part);
        hf__strbuf_puts(&out, ",'spec':{'items':");
        put_items(&out, seed, part, true, false);
        hf__strbuf_puts(&out, ",'named':");
        put_items(&out, seed, part, false, false);
        hf__strbuf_puts(&out, ",'whole':");
        put_items(&out, seed, part, true, true);
        hf__strbuf_puts(&out, ",'set':");
        put_set(&out, seed, part);
        hf__strbuf_puts(&out, ",'ports':");
        put_ports(&out, seed, part);
        hf__strbuf_puts(&out, ",'wild':{'x':");
        put_map(&out, seed, part);
        hf__strbuf_puts(&out, "}");
        if (part < 2)
                put_wholes(&out, seed);
        hf__strbuf_puts(&out, "}}");
        assert(out.error == 0);
        json = apply_fixture_parse(out.data);
        hf__strbuf_done(&out);
        return json;
}
