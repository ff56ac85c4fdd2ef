/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts the events of libyaml to JSON text. An anchor is the range of the output that its node
 * became, and an alias appends that range once more.
 *
 * Invariants: either the output is valid JSON or the conversion fails. The depth, also through
 * aliases, the number of events and of anchors, and (by out->max) the size of the output are
 * limited for every input.
 */
#include "client/yaml_body.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "client/yaml_library.h"
#include "client/yaml_scalar.h"

#define MAX_EVENTS 500000
/* For each event libyaml visits all open brackets. So its time is in proportion to the number of
 * open brackets, added up over all events; this is the limit of that sum. A text that reaches it
 * takes about a tenth of a second. Block style has no brackets. */
#define MAX_BRACKETS ((size_t)20000000)
#define MAX_ANCHORS  200 /* each alias searches them one after the other */

struct anchor {
        char *name;        /* owned */
        size_t start, end; /* of the node in the output; end 0 = the node is still open */
        size_t height;     /* levels of nested containers, including the node; 0 = a scalar */
};

/* An open mapping or sequence. */
struct container {
        bool is_mapping, is_flow; /* is_flow: it is in brackets */
        size_t n;                 /* keys and values, or elements, so far */
        size_t height;            /* of the highest node in it */
        struct anchor *named;     /* its anchor; NULL = none */
};

struct converter {
        struct hf__strbuf *out;
        struct hf_status *reterr_status;
        size_t depth, n_anchors;
        size_t n_brackets; /* open ones */
        bool ended;        /* the first document is complete */
        bool quoted; /* the last scalar is a number or boolean that is quoted because it is a key */
        struct container open[HF__JSON_DEPTH_MAX];
        struct anchor anchors[MAX_ANCHORS];
};

static int refuse_event(struct converter *c, const yaml_event_t *event, const char *reason) {
        return hf_fail(c->reterr_status, HF_E_INVALID, "line %zu: %s", event->start_mark.line + 1,
                       reason);
}

/* ---- nodes ---- */

static bool is_in_mapping(const struct converter *c) {
        return c->depth > 0 && c->open[c->depth - 1].is_mapping;
}

/* Whether the next node is a key. */
static bool is_key(const struct converter *c) {
        return is_in_mapping(c) && c->open[c->depth - 1].n % 2 == 0;
}

/* Writes the separator that precedes the next node. */
static void begin_node(struct converter *c) {
        if (c->depth == 0)
                return;
        if (is_in_mapping(c) && !is_key(c))
                hf__strbuf_putc(c->out, ':');
        else if (c->open[c->depth - 1].n > 0)
                hf__strbuf_putc(c->out, ',');
        c->open[c->depth - 1].n++;
}

/* Records that a node of this height is in the innermost container. */
static void note_height(struct converter *c, size_t height) {
        if (c->depth > 0 && c->open[c->depth - 1].height < height)
                c->open[c->depth - 1].height = height;
}

/* ---- anchors ---- */

/* The anchor of that name that was set last; NULL = none. */
static struct anchor *find_anchor(struct converter *c, const char *name) {
        for (size_t i = c->n_anchors; i-- > 0;)
                if (strcmp(c->anchors[i].name, name) == 0)
                        return &c->anchors[i];
        return NULL;
}

/* Records the anchor of the node that begins here. name NULL = the node has no anchor; *ret_anchor
 * is then NULL. */
static int add_anchor(struct converter *c, const yaml_event_t *event, const yaml_char_t *name,
                      struct anchor **ret_anchor) {
        struct anchor *anchor = name ? find_anchor(c, (const char *)name) : NULL;

        *ret_anchor = NULL;
        if (!name)
                return 0;
        if (anchor && anchor->end == 0)
                anchor = NULL; /* an outer node has the same name */
        if (!anchor && c->n_anchors == MAX_ANCHORS)
                return refuse_event(c, event, "there are too many anchors");
        if (!anchor) {
                anchor = &c->anchors[c->n_anchors];
                *anchor = (struct anchor){.name = strdup((const char *)name)};
                if (!anchor->name)
                        return hf_fail(c->reterr_status, -ENOMEM, "out of memory");
                c->n_anchors++;
        }
        anchor->start = c->out->n;
        anchor->end = 0;
        *ret_anchor = anchor;
        return 0;
}

static void end_anchor(struct converter *c, struct anchor *anchor, size_t height) {
        if (!anchor)
                return;
        anchor->end = c->out->n;
        anchor->height = height;
}

/* Appends the anchor's range to the output once more. Appending may move the buffer, so each piece
 * is first copied from where the buffer is at that time. */
static void repeat_anchor(struct converter *c, const struct anchor *anchor) {
        char piece[512];

        for (size_t at = anchor->start; at < anchor->end && c->out->error == 0;) {
                size_t n = anchor->end - at < sizeof piece ? anchor->end - at : sizeof piece;
                memcpy(piece, c->out->data + at, n);
                hf__strbuf_add(c->out, piece, n);
                at += n;
        }
}

static int convert_alias(struct converter *c, const yaml_event_t *event) {
        const char *name = (const char *)event->data.alias.anchor;
        const struct anchor *anchor = find_anchor(c, name);

        if (!anchor)
                return hf_fail(c->reterr_status, HF_E_INVALID, "unknown anchor '%.60s' referenced",
                               name);
        if (anchor->end == 0)
                return hf_fail(c->reterr_status, HF_E_INVALID,
                               "anchor '%.60s' value contains itself", name);
        if (c->depth + anchor->height > HF__JSON_DEPTH_MAX)
                return refuse_event(c, event, "the value is nested too deeply");
        if (c->out->error != 0)
                return 0;
        /* The first byte tells the type: '"' begins a text, 'n' a null. */
        bool key = is_key(c), is_text = c->out->data[anchor->start] == '"';
        if (key && (anchor->height > 0 || c->out->data[anchor->start] == 'n'))
                return refuse_event(c, event, "a key is not a scalar");
        begin_node(c);
        if (key && !is_text)
                hf__strbuf_putc(c->out, '"');
        repeat_anchor(c, anchor);
        if (key && !is_text)
                hf__strbuf_putc(c->out, '"');
        note_height(c, anchor->height);
        return 0;
}

/* ---- scalars ---- */

/* Writes !!binary as the text that it encodes. */
static int put_binary(struct converter *c, const yaml_event_t *event) {
        char *data = NULL;
        size_t n = 0;
        int r = hf__base64_decode((const char *)event->data.scalar.value, event->data.scalar.length,
                                  &data, &n);

        if (r != 0)
                return hf_fail(c->reterr_status, r, "%s",
                               r == HF_E_INVALID ? "!!binary value contains invalid base64 data"
                                                 : hf_strerror(r));
        hf__strbuf_json(c->out, data, n);
        if (n > 0)
                explicit_bzero(data, n); /* it may be a key (server/encryption) */
        free(data);
        return 0;
}

/* Writes a scalar whose text decides its type. A key is resolved too, and written as a string. */
static int put_resolved(struct converter *c, const yaml_event_t *event, bool key) {
        const char *text = (const char *)event->data.scalar.value;
        size_t n = event->data.scalar.length;
        char json[HF__YAML_SCALAR_MAX];

        switch (hf__yaml_scalar_resolve(text, n, json)) {
        case HF__YAML_TEXT: hf__strbuf_json(c->out, text, n); return 0;
        case HF__YAML_UNSUPPORTED:
                return hf_fail(c->reterr_status, HF_E_INVALID, "json: unsupported value: %s", json);
        case HF__YAML_VALUE: break;
        }
        if (key && strcmp(json, "null") == 0)
                return refuse_event(c, event, "a key is null");
        c->quoted = key;
        hf__strbuf_puts(c->out, key ? "\"" : "");
        hf__strbuf_puts(c->out, json);
        hf__strbuf_puts(c->out, key ? "\"" : "");
        return 0;
}

/* Writes a scalar as its tag says. With !!int, !!float, !!bool or !!null its text decides the type,
 * even if it is quoted. */
static int put_tagged(struct converter *c, const yaml_event_t *event, bool key) {
        static const char *const resolved[] = {YAML_INT_TAG, YAML_FLOAT_TAG, YAML_BOOL_TAG,
                                               YAML_NULL_TAG};
        const char *tag = (const char *)event->data.scalar.tag;
        char reason[120];

        if (strcmp(tag, YAML_STR_TAG) == 0 || strcmp(tag, "!") == 0 ||
            strcmp(tag, YAML_TIMESTAMP_TAG) == 0) {
                hf__strbuf_json(c->out, (const char *)event->data.scalar.value,
                                event->data.scalar.length);
                return 0;
        }
        if (strcmp(tag, "tag:yaml.org,2002:binary") == 0)
                return put_binary(c, event);
        for (size_t i = 0; i < sizeof resolved / sizeof resolved[0]; i++)
                if (strcmp(tag, resolved[i]) == 0)
                        return put_resolved(c, event, key);
        (void)snprintf(reason, sizeof reason, "the tag %.80s is not accepted", tag);
        return refuse_event(c, event, reason);
}

static int convert_scalar(struct converter *c, const yaml_event_t *event) {
        const char *text = (const char *)event->data.scalar.value;
        bool key = is_key(c), plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        struct anchor *anchor;

        if (key && plain && strcmp(text, "<<") == 0)
                return refuse_event(c, event, "merge keys are not accepted");
        begin_node(c);
        c->quoted = false;
        int r = add_anchor(c, event, event->data.scalar.anchor, &anchor);
        if (r == 0 && event->data.scalar.tag)
                r = put_tagged(c, event, key);
        else if (r == 0 && plain)
                r = put_resolved(c, event, key);
        else if (r == 0)
                hf__strbuf_json(c->out, text, event->data.scalar.length);
        end_anchor(c, anchor, 0);
        /* An alias of this key may be used as a value, and a number or boolean has no quotes there.
         * So the anchor's range excludes them. */
        if (anchor && c->quoted && c->out->error == 0) {
                anchor->start++;
                anchor->end--;
        }
        return r;
}

/* ---- containers ---- */

static bool is_flow(const yaml_event_t *event, bool is_mapping) {
        return is_mapping ? event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE
                          : event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
}

static int open_container(struct converter *c, const yaml_event_t *event, bool is_mapping,
                          const yaml_char_t *name, const yaml_char_t *tag) {
        const char *own_tag = is_mapping ? YAML_MAP_TAG : YAML_SEQ_TAG;
        struct anchor *anchor;
        char reason[120];

        if (tag && strcmp((const char *)tag, own_tag) != 0) {
                (void)snprintf(reason, sizeof reason, "the tag %.80s is not accepted", tag);
                return refuse_event(c, event, reason);
        }
        if (is_key(c))
                return refuse_event(c, event, "a key is not a scalar");
        if (c->depth == HF__JSON_DEPTH_MAX)
                return refuse_event(c, event, "the value is nested too deeply");
        begin_node(c);
        int r = add_anchor(c, event, name, &anchor);
        if (r != 0)
                return r;
        c->open[c->depth] = (struct container){.is_mapping = is_mapping,
                                               .is_flow = is_flow(event, is_mapping),
                                               .named = anchor};
        c->n_brackets += c->open[c->depth++].is_flow;
        hf__strbuf_putc(c->out, is_mapping ? '{' : '[');
        return 0;
}

static void close_container(struct converter *c) {
        assert(c->depth > 0); /* libyaml sends one end event for each start event */
        struct container container = c->open[--c->depth];

        c->n_brackets -= container.is_flow;
        hf__strbuf_putc(c->out, container.is_mapping ? '}' : ']');
        end_anchor(c, container.named, container.height + 1);
        note_height(c, container.height + 1);
}

/* ---- events ---- */

static int convert_event(struct converter *c, const yaml_event_t *event) {
        switch (event->type) {
        case YAML_ALIAS_EVENT: return convert_alias(c, event);
        case YAML_SCALAR_EVENT: return convert_scalar(c, event);
        case YAML_SEQUENCE_START_EVENT:
                return open_container(c, event, false, event->data.sequence_start.anchor,
                                      event->data.sequence_start.tag);
        case YAML_MAPPING_START_EVENT:
                return open_container(c, event, true, event->data.mapping_start.anchor,
                                      event->data.mapping_start.tag);
        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT: close_container(c); return 0;
        case YAML_DOCUMENT_END_EVENT: c->ended = true; return 0;
        case YAML_NO_EVENT:
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_START_EVENT: return 0;
        case YAML_STREAM_END_EVENT: break;
        }
        c->ended = true;
        hf__strbuf_puts(c->out, c->out->n == 0 ? "null" : ""); /* a text without a document */
        return 0;
}

/* Fails with the message and line of go-yaml, which is a port of libyaml. go-yaml counts lines from
 * 1 in a scanner's error and from 0 in a parser's, and names no line if the error is in the first
 * one. */
static int refuse_syntax(const struct converter *c, const yaml_parser_t *parser) {
        size_t line = parser->problem_mark.line;

        if (parser->error == YAML_MEMORY_ERROR)
                return hf_fail(c->reterr_status, -ENOMEM, "out of memory");
        if (line != 0 && parser->error == YAML_SCANNER_ERROR)
                line++;
        const char *problem =
                parser->problem ? parser->problem : "unknown problem parsing YAML content";
        if (line == 0)
                return hf_fail(c->reterr_status, HF_E_INVALID, "%s", problem);
        return hf_fail(c->reterr_status, HF_E_INVALID, "line %zu: %s", line, problem);
}

static int convert_document(const struct hf__yaml_library *lib, yaml_parser_t *parser,
                            struct converter *c) {
        size_t brackets = 0;
        int r = 0;

        for (size_t n = 0; r == 0 && !c->ended && c->out->error == 0; n++) {
                yaml_event_t event;

                brackets += c->n_brackets;
                if (n == MAX_EVENTS || brackets > MAX_BRACKETS)
                        return hf_fail(c->reterr_status, HF_E_INVALID,
                                       "the text has too many values");
                if (!lib->parse(parser, &event))
                        return refuse_syntax(c, parser);
                r = convert_event(c, &event);
                lib->event_delete(&event);
        }
        if (r == 0 && c->out->error != 0)
                r = hf_fail(c->reterr_status, c->out->error, "%s", hf_strerror(c->out->error));
        return r;
}

int hf__yaml_body_to_json(const char *text, size_t n, struct hf__strbuf *out,
                          struct hf_status *reterr_status) {
        struct converter *c = calloc(1, sizeof *c);
        struct hf__yaml_library lib = {0};
        yaml_parser_t parser;

        if (!c)
                return hf_fail(reterr_status, -ENOMEM, "out of memory");
        c->out = out;
        c->reterr_status = reterr_status;
        int r = hf__yaml_library_open(&lib, reterr_status);
        if (r == 0 && lib.initialize(&parser)) {
                lib.set_input(&parser, (const unsigned char *)text, n);
                r = convert_document(&lib, &parser, c);
                lib.parser_delete(&parser);
        } else if (r == 0) {
                r = hf_fail(reterr_status, -ENOMEM, "out of memory");
        }
        hf__yaml_library_close(&lib);
        for (size_t i = 0; i < c->n_anchors; i++)
                free(c->anchors[i].name);
        free(c);
        return r;
}
