/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/manifest.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "client/yaml.h"

#define MAX_JSON (1u << 20) /* of one object: what a server takes */

/* ---- kinds ---- */

static int copy_kind(const struct hf_bootstrap_kind *from, struct hf__kind *kind) {
        const char *slash = strchr(from->api_version, '/');

        kind->namespaced = from->namespaced;
        kind->api_version = strdup(from->api_version);
        kind->kind = strdup(from->kind);
        kind->plural = strdup(from->plural);
        kind->group = slash ? strndup(from->api_version, (size_t)(slash - from->api_version))
                            : strdup("");
        kind->version = strdup(slash ? slash + 1 : from->api_version);
        return kind->api_version && kind->kind && kind->plural && kind->group && kind->version
                       ? 0
                       : -ENOMEM;
}

int hf__kinds_copy(const struct hf_bootstrap_kind *kinds, size_t n, struct hf__kinds *ret_kinds) {
        struct hf__kinds copies = {.list = calloc(n ? n : 1, sizeof *copies.list)};
        int r = copies.list ? 0 : -ENOMEM;

        for (; r == 0 && copies.n < n; copies.n++)
                r = copy_kind(&kinds[copies.n], &copies.list[copies.n]);
        if (r != 0)
                hf__kinds_done(&copies);
        else
                *ret_kinds = copies;
        return r;
}

void hf__kinds_done(struct hf__kinds *kinds) {
        for (size_t i = 0; i < kinds->n; i++) {
                struct hf__kind *kind = &kinds->list[i];
                free(kind->api_version);
                free(kind->kind);
                free(kind->plural);
                free(kind->group);
                free(kind->version);
        }
        free(kinds->list);
        *kinds = (struct hf__kinds){0};
}

static const struct hf__kind *find_kind(const struct hf__kinds *kinds, const char *api_version,
                                        const char *kind) {
        for (size_t i = 0; i < kinds->n; i++)
                if (strcmp(kinds->list[i].api_version, api_version) == 0 &&
                    strcmp(kinds->list[i].kind, kind) == 0)
                        return &kinds->list[i];
        return NULL;
}

/* ---- steps ---- */

static void step_done(struct hf__step *step) {
        free(step->id);
        free(step->ns);
        free(step->name);
        free(step->content);
        free(step->source);
        *step = (struct hf__step){0};
}

void hf__steps_done(struct hf__steps *steps) {
        for (size_t i = 0; i < steps->n; i++)
                step_done(&steps->list[i]);
        free(steps->list);
        *steps = (struct hf__steps){0};
}

/* Takes *step on success. */
static int append(struct hf__steps *steps, struct hf__step *step) {
        if (steps->n == HF_BOOTSTRAP_STEPS_MAX)
                return HF_E_TOO_LARGE;
        struct hf__step *list = realloc(steps->list, (steps->n + 1) * sizeof *list);
        if (!list)
                return -ENOMEM;
        steps->list = list;
        list[steps->n++] = *step;
        *step = (struct hf__step){0};
        return 0;
}

/* Where in the source: the object whose turn it is. */
struct place {
        struct hf__steps *steps;
        const struct hf__kinds *kinds;
        const char *source;
        size_t number, line; /* of the document in it; from 1 */
        bool named;          /* what is wrong has been said, and where */
};

/* What files and their names say goes into messages of one line. */
static void make_one_line(char *text) {
        for (char *c = text; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                        *c = ' ';
}

/* Of a long path the end, which tells more. */
static void name_source(const char *source, char *text, size_t max) {
        size_t n = strlen(source);

        (void)snprintf(text, max, "%s%s", n < max ? "" : "...",
                       n < max ? source : source + n - (max - 4));
        make_one_line(text);
}

static void name_place(const struct place *place, char *text, size_t max) {
        char where[64];
        int n = snprintf(where, sizeof where, ": document %zu, line %zu", place->number,
                         place->line);

        name_source(place->source, text, max - (size_t)n);
        memcpy(text + strlen(text), where, (size_t)n + 1);
}

static int refuse(const struct place *place, struct hf_status *reterr_status, const char *format,
                  ...) __attribute__((format(printf, 3, 4)));
static int refuse(const struct place *place, struct hf_status *reterr_status, const char *format,
                  ...) {
        char where[256], what[200];
        va_list args;

        name_place(place, where, sizeof where);
        va_start(args, format);
        (void)vsnprintf(what, sizeof what, format, args);
        va_end(args);
        make_one_line(what);
        return hf_fail(reterr_status, HF_E_INVALID, "%s: %s", where, what);
}

/* A name becomes part of URLs and of the step's id: what any server would refuse does not get
 * there. */
static bool is_name(const char *text) {
        size_t n = text ? strlen(text) : 0;
        if (n == 0 || n > HF_NAME_MAX || strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
                return false;
        for (const char *c = text; *c; c++)
                if (*c <= ' ' || *c == 0x7f || *c == '/' || *c == '%' || *c == '"')
                        return false;
        return true;
}

static int check_identity(const struct place *place, const struct hf__json *object,
                          struct hf__step *step, struct hf_status *reterr_status) {
        const char *api_version = hf__json_string(object, "apiVersion"),
                   *kind = hf__json_string(object, "kind");
        const char *name = hf__json_string(object, "metadata.name"),
                   *ns = hf__json_string(object, "metadata.namespace");

        if (!hf__json_is_object(object))
                return refuse(place, reterr_status, "it is not an object");
        if (!api_version || !kind)
                return refuse(place, reterr_status, "field %s is missing",
                              api_version ? "kind" : "apiVersion");
        step->kind = find_kind(place->kinds, api_version, kind);
        if (!step->kind)
                return refuse(place, reterr_status,
                              "field kind: there is no kind \"%.60s\" in \"%.80s\"", kind,
                              api_version);
        if (!is_name(name))
                return refuse(place, reterr_status, "field metadata.name: %s",
                              name ? "it is no name" : "it is missing");
        if (step->kind->namespaced && !is_name(ns))
                return refuse(place, reterr_status, "field metadata.namespace: a %s needs one",
                              kind);
        if (!step->kind->namespaced && hf__json_path(object, "metadata.namespace"))
                return refuse(place, reterr_status, "field metadata.namespace: a %s has none",
                              kind);
        return 0;
}

static int fill(const struct place *place, struct hf__json *object, struct hf__step *step) {
        const char *name = hf__json_string(object, "metadata.name"),
                   *ns = hf__json_string(object, "metadata.namespace");
        const struct hf__kind *kind = step->kind;
        struct hf__strbuf text = {.max = MAX_JSON};
        char where[160]; /* what messages about the step have room for */

        hf__content_strip(object);
        int r = hf__content_hash(object, step->hash);
        hf__json_print(object, &text);
        if (r == 0)
                r = text.error;
        name_place(place, where, sizeof where);
        step->content = text.data;
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
                return refuse(place, reterr_status, "an object in it has the key \"%.100s\" twice",
                              key);
        if (r == 0)
                r = check_identity(place, object, &step, reterr_status);
        if (r != 0)
                return r < 0 ? hf_fail(reterr_status, r, "%s: %s", place->source, hf_strerror(r))
                             : r;
        r = fill(place, object, &step);
        if (r == 0)
                r = append(place->steps, &step);
        step_done(&step);
        return r != 0 ? hf_fail(reterr_status, r, "%s: %s", place->source,
                                r == HF_E_TOO_LARGE ? "too many or too large manifests"
                                                    : hf_strerror(r))
                      : 0;
}

/* ---- texts ---- */

static int on_document(void *ctx, size_t number, size_t line, const char *json, size_t n,
                       struct hf_status *reterr_status) {
        struct place *place = ctx;
        struct hf__json *object = NULL;

        place->number = number;
        place->line = line;
        if (n == 4 && memcmp(json, "null", 4) == 0)
                return 0; /* nothing between two marks, or comments only */
        int r = hf__json_parse(json, n, &object, NULL);
        if (r < 0)
                return r;
        r = r != 0 ? refuse(place, reterr_status, "it is not an object that JSON can say")
                   : add_object(place, object, reterr_status);
        place->named = r != 0;
        hf__json_free(object);
        return r;
}

static int add_yaml(struct place *place, const char *text, size_t n,
                    struct hf_status *reterr_status) {
        struct hf_status why = {0};
        char source[256];
        int r = hf__yaml_each(text, n, MAX_JSON, on_document, place, &why);

        if (r != 0 && place->named && reterr_status)
                *reterr_status = why;
        if (r == 0 || place->named)
                return r;
        name_source(place->source, source, sizeof source);
        return hf_fail(reterr_status, r, "%s: %s", source,
                       why.message[0] ? why.message : hf_strerror(r));
}

static int add_json(struct place *place, const char *text, size_t n,
                    struct hf_status *reterr_status) {
        struct hf__json *object;
        size_t offset = 0;
        int r = hf__json_parse(text, n, &object, &offset);

        if (r < 0)
                return hf_fail(reterr_status, r, "%s: %s", place->source, hf_strerror(r));
        for (size_t i = 0; i < offset && i < n; i++)
                place->line += text[i] == '\n';
        if (r != 0)
                return refuse(place, reterr_status, "this is not JSON");
        place->line = 1;
        r = add_object(place, object, reterr_status);
        hf__json_free(object);
        return r;
}

int hf__steps_add_text(struct hf__steps *steps, const struct hf__kinds *kinds, const char *source,
                       const char *text, size_t n, struct hf_status *reterr_status) {
        struct place place = {.steps = steps,
                              .kinds = kinds,
                              .source = source,
                              .number = 1,
                              .line = 1};
        size_t begin = 0;

        if (!hf__utf8_valid(text, n) || memchr(text, '\0', n))
                return hf_fail(reterr_status, HF_E_INVALID, "%s: it is not text in UTF-8", source);
        while (begin < n && strchr(" \t\r\n", text[begin]))
                begin++;
        /* YAML's own form for objects begins with a brace too, but is JSON but for curiosities:
         * what is not JSON is then named better. */
        if (begin < n && text[begin] == '{')
                return add_json(&place, text, n, reterr_status);
        return add_yaml(&place, text, n, reterr_status);
}

int hf__steps_check_unique(const struct hf__steps *earlier, const struct hf__steps *steps,
                           struct hf_status *reterr_status) {
        for (size_t i = 0; i < steps->n; i++) {
                const struct hf__step *step = &steps->list[i], *first = NULL;
                for (size_t k = 0; !first && k < earlier->n; k++)
                        if (strcmp(earlier->list[k].id, step->id) == 0)
                                first = &earlier->list[k];
                for (size_t k = 0; !first && k < i; k++)
                        if (strcmp(steps->list[k].id, step->id) == 0)
                                first = &steps->list[k];
                if (first)
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "%.180s: field metadata.name: %.100s is in %.160s already",
                                       step->source, step->id, first->source);
        }
        return 0;
}
