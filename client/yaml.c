/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts YAML to JSON text while libyaml parses it: each event of the parser appends to the
 * output. The state is a stack of the open containers. Plain scalars follow YAML's core schema
 * where JSON has an equivalent: null, true, false, and numbers in JSON's spelling. Every other
 * scalar becomes a string.
 *
 * Invariants: either the output is valid JSON or the conversion fails. The depth, the number of
 * events and the size of the output are limited for every input.
 */
#include "client/yaml.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "client/yaml_library.h"

#define MAX_DEPTH  64
#define MAX_EVENTS 200000

struct converter {
        struct hf__strbuf *out;
        struct hf_status *reterr_status;
        const char *text; /* the whole input; borrowed */
        size_t n_text;
        size_t depth, n_documents;
        size_t line;             /* the line where the document begins */
        hf__yaml_fn on_document; /* NULL = only one document is allowed */
        void *ctx;
        /* The open containers, the outermost first; `depth` of them are in use. */
        struct {
                bool is_mapping;
                size_t n; /* number of keys and values, or of elements, so far */
        } open[MAX_DEPTH];
};

/* ---- values ---- */

/* Fails with a message that names the place. If the text may have only one document, the number of
 * the document would be noise. */
static int refuse_at(struct converter *c, size_t line, const char *reason) {
        if (c->on_document)
                return hf_fail(c->reterr_status, HF_E_INVALID, "document %zu, line %zu: %s",
                               c->n_documents ? c->n_documents : 1, line, reason);
        return hf_fail(c->reterr_status, HF_E_INVALID, "line %zu: %s", line, reason);
}

/* libyaml counts lines from 0. */
static int refuse_event(struct converter *c, const yaml_event_t *event, const char *reason) {
        return refuse_at(c, event->start_mark.line + 1, reason);
}

/* Counts the next node of the open container and writes the separator that precedes it. */
static int begin_node(struct converter *c, const yaml_event_t *event, bool is_scalar) {
        if (c->depth == 0) {
                if (c->n_documents > 1 && !c->on_document)
                        return refuse_event(c, event, "there is a second document");
                return 0;
        }
        bool is_mapping = c->open[c->depth - 1].is_mapping;
        size_t n = c->open[c->depth - 1].n++;
        if (is_mapping && n % 2 == 0 && !is_scalar)
                return refuse_event(c, event, "a key is not a scalar");
        if (is_mapping && n % 2 == 1)
                hf__strbuf_putc(c->out, ':');
        else if (n > 0)
                hf__strbuf_putc(c->out, ',');
        return 0;
}

/* Whether the current node, which begin_node has counted, is the key of a mapping. */
static bool is_key(const struct converter *c) {
        return c->depth > 0 && c->open[c->depth - 1].is_mapping && c->open[c->depth - 1].n % 2 == 1;
}

/* Returns the index after the digits that begin at i. */
static size_t skip_digits(const char *text, size_t i, size_t n) {
        while (i < n && text[i] >= '0' && text[i] <= '9')
                i++;
        return i;
}

/* Whether a scalar is a number in JSON's spelling. JSON allows no leading plus sign or zero, so
 * "007" remains a string. */
static bool is_json_number(const char *text, size_t n) {
        size_t i = n > 0 && text[0] == '-' ? 1 : 0, end = skip_digits(text, i, n);

        if (end == i || (text[i] == '0' && end - i > 1))
                return false;
        if (end < n && text[end] == '.') {
                i = end + 1;
                end = skip_digits(text, i, n);
                if (end == i)
                        return false;
        }
        if (end < n && (text[end] == 'e' || text[end] == 'E')) {
                i = end + 1;
                i += i < n && (text[i] == '-' || text[i] == '+') ? 1 : 0;
                end = skip_digits(text, i, n);
                if (end == i)
                        return false;
        }
        return end == n;
}

/* Returns the JSON of a plain scalar that is null or a boolean. NULL: it is neither. */
static const char *plain_word(const char *text, size_t n) {
        static const char *const words[][2] = {
                {"", "null"},       {"~", "null"},      {"null", "null"},   {"Null", "null"},
                {"NULL", "null"},   {"true", "true"},   {"True", "true"},   {"TRUE", "true"},
                {"false", "false"}, {"False", "false"}, {"FALSE", "false"},
        };
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
                if (strlen(words[i][0]) == n && memcmp(words[i][0], text, n) == 0)
                        return words[i][1];
        return NULL;
}

/* Quoted scalars, scalars with the tag !!str, and keys are always strings. */
static int convert_scalar(struct converter *c, const yaml_event_t *event) {
        const char *text = (const char *)event->data.scalar.value;
        const char *tag = (const char *)event->data.scalar.tag;
        size_t n = event->data.scalar.length;

        if (event->data.scalar.anchor || (tag && strcmp(tag, YAML_STR_TAG) != 0))
                return refuse_event(c, event, "anchors and tags are not accepted");
        int r = begin_node(c, event, true);
        if (r != 0)
                return r;
        bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !tag && !is_key(c);
        const char *word = plain ? plain_word(text, n) : NULL;
        if (word)
                hf__strbuf_puts(c->out, word);
        else if (plain && is_json_number(text, n))
                hf__strbuf_add(c->out, text, n);
        else
                hf__strbuf_json(c->out, text, n);
        return 0;
}

/* Opens a sequence or a mapping. The limit on the depth keeps the stack small. */
static int open_container(struct converter *c, const yaml_event_t *event, bool is_mapping,
                          bool has_anchor_or_tag) {
        if (has_anchor_or_tag)
                return refuse_event(c, event, "anchors and tags are not accepted");
        if (c->depth == MAX_DEPTH)
                return refuse_event(c, event, "the value is nested too deeply");
        int r = begin_node(c, event, false);
        if (r != 0)
                return r;
        c->open[c->depth].is_mapping = is_mapping;
        c->open[c->depth++].n = 0;
        hf__strbuf_putc(c->out, is_mapping ? '{' : '[');
        return 0;
}

/* An error of the output buffer is reported here, so that the message names the document. */
static int end_document(struct converter *c) {
        if (!c->on_document)
                return 0;
        assert(c->depth == 0);
        int r = c->out->error;
        if (r == 0)
                return c->on_document(c->ctx, c->n_documents, c->line, c->out->data, c->out->n,
                                      c->reterr_status);
        return hf_fail(c->reterr_status, r, "document %zu, line %zu: %s", c->n_documents, c->line,
                       hf_strerror(r));
}

static int convert_event(struct converter *c, const yaml_event_t *event) {
        switch (event->type) {
        case YAML_DOCUMENT_START_EVENT:
                c->n_documents++;
                c->line = event->end_mark.line + 1;
                if (c->on_document)
                        hf__strbuf_reset(c->out);
                return 0;
        case YAML_ALIAS_EVENT: return refuse_event(c, event, "aliases are not accepted");
        case YAML_SCALAR_EVENT: return convert_scalar(c, event);
        case YAML_SEQUENCE_START_EVENT:
                return open_container(c, event, false,
                                      event->data.sequence_start.anchor ||
                                              event->data.sequence_start.tag);
        case YAML_MAPPING_START_EVENT:
                return open_container(c, event, true,
                                      event->data.mapping_start.anchor ||
                                              event->data.mapping_start.tag);
        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT:
                assert(c->depth > 0); /* libyaml sends one end event for each start event */
                hf__strbuf_putc(c->out, c->open[--c->depth].is_mapping ? '}' : ']');
                return 0;
        case YAML_NO_EVENT:
        case YAML_STREAM_START_EVENT:
        case YAML_STREAM_END_EVENT: return 0;
        case YAML_DOCUMENT_END_EVENT: return end_document(c);
        }
        return 0;
}

/* Returns the line of the parser's error, from 1. libyaml gives only the offset of a character that
 * YAML does not allow. */
static size_t error_line(const struct converter *c, const yaml_parser_t *parser) {
        size_t line = 1;

        if (parser->error != YAML_READER_ERROR)
                return parser->problem_mark.line + 1;
        for (size_t i = 0; i < parser->problem_offset && i < c->n_text; i++)
                line += c->text[i] == '\n';
        return line;
}

/* Converts all documents. Counts the events, so that a text with very many small values does not
 * block its caller for long. */
static int convert_documents(const struct hf__yaml_library *lib, yaml_parser_t *parser,
                             struct converter *c) {
        bool ended = false;
        int r = 0;

        for (size_t n = 0; r == 0 && !ended; n++) {
                yaml_event_t event;
                if (n == MAX_EVENTS)
                        return hf_fail(c->reterr_status, HF_E_INVALID,
                                       "the text has too many values");
                if (!lib->parse(parser, &event)) {
                        if (parser->error == YAML_MEMORY_ERROR)
                                return hf_fail(c->reterr_status, -ENOMEM, "out of memory");
                        return refuse_at(c, error_line(c, parser),
                                         parser->problem ? parser->problem : "this is not YAML");
                }
                ended = event.type == YAML_STREAM_END_EVENT;
                r = convert_event(c, &event);
                lib->event_delete(&event);
        }
        if (r == 0 && c->n_documents == 0 && !c->on_document)
                r = hf_fail(c->reterr_status, HF_E_INVALID, "the text is empty");
        if (r == 0 && c->out->error)
                r = hf_fail(c->reterr_status, c->out->error, "%s", hf_strerror(c->out->error));
        return r;
}

static int run_converter(const char *text, size_t n, struct converter *converter) {
        HF__CLEANUP(hf__yaml_library_close) struct hf__yaml_library lib = {0};
        yaml_parser_t parser;

        int r = hf__yaml_library_open(&lib, converter->reterr_status);
        if (r != 0)
                return r;
        if (!lib.initialize(&parser))
                return hf_fail(converter->reterr_status, -ENOMEM, "out of memory");
        converter->text = text;
        converter->n_text = n;
        lib.set_input(&parser, (const unsigned char *)text, n);
        r = convert_documents(&lib, &parser, converter);
        lib.parser_delete(&parser);
        return r;
}

int hf__yaml_to_json(const char *text, size_t n, struct hf__strbuf *out,
                     struct hf_status *reterr_status) {
        struct converter converter = {.out = out, .reterr_status = reterr_status};
        return run_converter(text, n, &converter);
}

int hf__yaml_each(const char *text, size_t n, size_t max_json, hf__yaml_fn on_document, void *ctx,
                  struct hf_status *reterr_status) {
        struct hf__strbuf out = {.max = max_json};
        struct converter converter = {.out = &out,
                                      .reterr_status = reterr_status,
                                      .on_document = on_document,
                                      .ctx = ctx};
        int r = run_converter(text, n, &converter);
        hf__strbuf_done(&out);
        return r;
}
