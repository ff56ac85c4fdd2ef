/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns manifests into steps: parses YAML or JSON, checks the object's kind, namespace and name,
 * removes the fields that the server manages, and computes a hash of the content.
 *
 * Invariants: the steps depend on the manifests and the table of kinds only, so instances that have
 * the same manifests and kinds create the same steps. A message about an invalid document is one
 * line and names the file, the document and the line.
 */
#include "bootstrap/manifest.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>
#include <holdfast/fence.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "client/yaml.h"

#define MAX_JSON (1u << 20) /* bytes of one object as JSON */

/* ---- positions and errors ---- */

/* The position of the document that is being read. */
struct place {
        struct hf__steps *steps;
        const struct hf__manifest_kinds *kinds;
        const char *source;
        /* Of the document within the source; both start at 1. For a syntax error in JSON, line is
         * that of the error. */
        size_t number, line;
        bool rejected; /* on_document has already set the error message */
};

/* Replaces control characters: text and names of files go into one-line messages. */
static void make_one_line(char *text) {
        for (char *c = text; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                        *c = ' ';
}

/* Writes the source's name. Truncates a long path at its beginning, to keep the file name; then the
 * dots and the NUL take 4 bytes. */
static void format_source(const char *source, char *text, size_t max) {
        size_t n = strlen(source);

        (void)snprintf(text, max, "%s%s", n < max ? "" : "...",
                       n < max ? source : source + n - (max - 4));
        make_one_line(text);
}

/* Writes the source's name and the numbers of the document and the line. */
static void format_place(const struct place *place, char *text, size_t max) {
        char where[64];
        int n = snprintf(where, sizeof where, ": document %zu, line %zu", place->number,
                         place->line);

        format_source(place->source, text, max - (size_t)n);
        memcpy(text + strlen(text), where, (size_t)n + 1);
}

static int reject_manifest(const struct place *place, struct hf_status *reterr_status,
                           const char *format, ...) __attribute__((format(printf, 3, 4)));
static int reject_manifest(const struct place *place, struct hf_status *reterr_status,
                           const char *format, ...) {
        char where[256], what[200];
        va_list args;

        format_place(place, where, sizeof where);
        va_start(args, format);
        (void)vsnprintf(what, sizeof what, format, args);
        va_end(args);
        make_one_line(what);
        return hf_fail(reterr_status, HF_E_INVALID, "%s: %s", where, what);
}

/* A name becomes part of URLs, of the step's id and of messages. Rejects the names that would be
 * ambiguous in one of them; the server checks the rest. */
static bool is_name(const char *text) {
        size_t n = text ? strlen(text) : 0;
        if (n == 0 || n > HF_NAME_MAX || strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
                return false;
        for (const char *c = text; *c; c++)
                if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f || *c == '/' ||
                    *c == '%' || *c == '"')
                        return false;
        return true;
}

/* ---- one object ---- */

/* Checks the object's kind, name and namespace, and sets step->kind. */
static int check_identity(const struct place *place, const struct hf__json *object,
                          struct hf__step *step, struct hf_status *reterr_status) {
        const char *api_version = hf__json_string(object, "apiVersion");
        const char *kind = hf__json_string(object, "kind");
        const char *name = hf__json_string(object, "metadata.name");
        const char *ns = hf__json_string(object, "metadata.namespace");

        if (!hf__json_is_object(object))
                return reject_manifest(place, reterr_status, "it is not an object");
        if (!api_version || !kind)
                return reject_manifest(place, reterr_status, "field %s is missing",
                                       api_version ? "kind" : "apiVersion");
        step->kind = hf__manifest_kinds_find(place->kinds, api_version, kind);
        if (!step->kind)
                return reject_manifest(place, reterr_status,
                                       "field kind: there is no kind \"%.60s\" in \"%.80s\"", kind,
                                       api_version);
        if (!is_name(name))
                return reject_manifest(place, reterr_status, "field metadata.name: %s",
                                       name ? "it is not a valid name" : "it is missing");
        if (step->kind->namespaced && !is_name(ns))
                return reject_manifest(place, reterr_status,
                                       "field metadata.namespace: a %s needs one", kind);
        if (!step->kind->namespaced && hf__json_path(object, "metadata.namespace"))
                return reject_manifest(place, reterr_status,
                                       "field metadata.namespace: a %s has none", kind);
        return 0;
}

/* Fills the step from an object that check_identity accepted. 0, -ENOMEM or HF_E_TOO_LARGE. The
 * caller calls hf__step_done on the step, also on failure. */
static int fill_step(const struct place *place, struct hf__json *object, struct hf__step *step) {
        const char *name = hf__json_string(object, "metadata.name");
        const char *ns = hf__json_string(object, "metadata.namespace");
        const struct hf__manifest_kind *kind = step->kind;
        struct hf__strbuf text = {.max = MAX_JSON};
        char where[160]; /* the step's place for messages; cut if long */

        assert(kind);
        hf__content_strip(object);
        int r = hf__content_hash(object, step->hash);
        hf__json_print(object, &text);
        if (r == 0)
                r = text.error;
        format_place(place, where, sizeof where);
        step->content = text.data; /* takes ownership */
        step->n_content = text.n;
        step->source = strdup(where);
        step->name = strdup(name);
        step->ns = kind->namespaced ? strdup(ns) : NULL;
        if (asprintf(&step->id, "%s%s%s/%s%s%s", kind->kind, *kind->group ? "." : "", kind->group,
                     step->ns ? step->ns : "", step->ns ? "/" : "", name) < 0)
                step->id = NULL;
        if (r == 0 &&
            (!step->source || !step->name || (kind->namespaced && !step->ns) || !step->id))
                r = -ENOMEM;
        return r;
}

static int add_object(const struct place *place, struct hf__json *object,
                      struct hf_status *reterr_status) {
        struct hf__step step = {0};
        const char *key = "";
        int r = hf__json_check_unique(object, &key);

        if (r == HF_E_INVALID)
                return reject_manifest(place, reterr_status,
                                       "the key \"%.100s\" occurs twice in an object", key);
        if (r == 0)
                r = check_identity(place, object, &step, reterr_status);
        if (r != 0)
                return r < 0 ? hf_fail(reterr_status, r, "%s: %s", place->source, hf_strerror(r))
                             : r;
        r = fill_step(place, object, &step);
        if (r == 0)
                r = hf__steps_append(place->steps, &step);
        hf__step_done(&step);
        if (r == 0)
                return 0;
        return hf_fail(reterr_status, r, "%s: %s", place->source,
                       r == HF_E_TOO_LARGE ? "the manifests are too many or too large"
                                           : hf_strerror(r));
}

/* ---- texts ---- */

static int on_document(void *ctx, size_t number, size_t line, const char *json, size_t n,
                       struct hf_status *reterr_status) {
        struct place *place = ctx;
        struct hf__json *object = NULL;

        place->number = number;
        place->line = line;
        if (n == 4 && memcmp(json, "null", 4) == 0)
                return 0; /* empty, or only comments */
        int r = hf__json_parse(json, n, &object, NULL);
        if (r < 0)
                return r;
        r = r != 0 ? reject_manifest(place, reterr_status,
                                     "it contains a value that JSON cannot represent")
                   : add_object(place, object, reterr_status);
        place->rejected = r != 0;
        hf__json_free(object);
        return r;
}

static int add_yaml(struct place *place, const char *text, size_t n,
                    struct hf_status *reterr_status) {
        struct hf_status why = {0};
        char source[256];
        int r = hf__yaml_each(text, n, MAX_JSON, on_document, place, &why);

        if (r != 0 && place->rejected && reterr_status)
                *reterr_status = why;
        if (r == 0 || place->rejected)
                return r;
        format_source(place->source, source, sizeof source);
        return hf_fail(reterr_status, r, "%s: %s", source,
                       why.message[0] ? why.message : hf_strerror(r));
}

static int add_json(struct place *place, const char *text, size_t n,
                    struct hf_status *reterr_status) {
        struct hf__json *object;
        size_t offset = 0; /* of the syntax error */
        int r = hf__json_parse(text, n, &object, &offset);

        if (r < 0)
                return hf_fail(reterr_status, r, "%s: %s", place->source, hf_strerror(r));
        for (size_t i = 0; i < offset && i < n; i++)
                place->line += text[i] == '\n';
        if (r != 0)
                return reject_manifest(place, reterr_status, "this is not JSON");
        place->line = 1;
        r = add_object(place, object, reterr_status);
        hf__json_free(object);
        return r;
}

int hf__manifest_fail_in_one_line(int r, struct hf_status *reterr_status) {
        if (r != 0 && reterr_status)
                make_one_line(reterr_status->message);
        return r;
}

static int read_text(struct hf__steps *steps, const struct hf__manifest_kinds *kinds,
                     const char *source, const char *text, size_t n,
                     struct hf_status *reterr_status) {
        struct place place = {.steps = steps,
                              .kinds = kinds,
                              .source = source,
                              .number = 1,
                              .line = 1};
        size_t begin = 0;

        if (n == 0)
                return 0; /* text may be NULL */
        if (!hf__utf8_valid(text, n) || memchr(text, '\0', n))
                return hf_fail(reterr_status, HF_E_INVALID, "%s: it is not text in UTF-8", source);
        while (begin < n && strchr(" \t\r\n", text[begin]))
                begin++;
        /* YAML may also begin with a brace, but such a text is almost always meant as JSON, and the
         * JSON parser then gives the better error message. */
        if (begin < n && text[begin] == '{')
                return add_json(&place, text, n, reterr_status);
        return add_yaml(&place, text, n, reterr_status);
}

int hf__manifest_read_text(struct hf__steps *steps, const struct hf__manifest_kinds *kinds,
                           const char *source, const char *text, size_t n,
                           struct hf_status *reterr_status) {
        int r = read_text(steps, kinds, source, text, n, reterr_status);

        return hf__manifest_fail_in_one_line(r, reterr_status);
}
