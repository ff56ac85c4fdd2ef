/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resources/selector.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/meta.h"

#define FIELD_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./"

/* ---- parsing: one requirement is `key`, `!key`, `key op value`, or `key in (a,b)` ---- */

static char *trim(char *text) {
        while (isspace((unsigned char)*text))
                text++;
        char *end = text + strlen(text);
        while (end > text && isspace((unsigned char)end[-1]))
                end--;
        *end = '\0';
        return text;
}

/* A path into the object: which ones there are is looked up. */
static bool is_field(const char *key) { return *key && key[strspn(key, FIELD_CHARS)] == '\0'; }

/* What no label can have for a value, a requirement cannot ask for; bounds are numbers. */
static bool values_fit(const struct hfd_requirement *r) {
        bool bound = r->op == HFD_GREATER || r->op == HFD_LESS;
        char *end;

        for (size_t i = 0; i < r->n_values; i++) {
                errno = 0;
                if (bound ? ((void)strtoll(r->values[i], &end, 10), errno || *end || !*r->values[i])
                          : !hfd_is_label_value(r->values[i]))
                        return false;
        }
        return true;
}

static int add_values(struct hfd_requirement *r, char *list, char separator) {
        size_t n = 1;

        for (char *c = list; separator && *c; c++)
                n += *c == separator;
        r->values = calloc(n, sizeof *r->values);
        if (!r->values)
                return -ENOMEM;
        for (char *next = list; next; list = next) {
                next = separator ? strchr(list, separator) : NULL;
                if (next)
                        *next++ = '\0';
                r->values[r->n_values++] = trim(list);
        }
        return 0;
}

/* The values of a requirement whose key and operator are known. */
static int finish(struct hfd_requirement *r, char *list, char separator, bool fields) {
        if (!(fields ? is_field(r->key) : hfd_is_qualified_name(r->key)))
                return HF_E_INVALID;
        int e = add_values(r, list, separator);
        return e || fields || values_fit(r) ? e : HF_E_INVALID;
}

static int parse_set(struct hfd_requirement *r, char *text) {
        char *open = strchr(text, '('), *close = strrchr(text, ')');

        if (!open || !close || close < open || *trim(close + 1))
                return HF_E_INVALID;
        *open = *close = '\0';
        char *word = trim(text);
        size_t n = strlen(word);
        if (n > 6 && strcmp(word + n - 6, " notin") == 0)
                r->op = HFD_NOT_IN, word[n - 6] = '\0';
        else if (n > 3 && strcmp(word + n - 3, " in") == 0)
                r->op = HFD_IN, word[n - 3] = '\0';
        else
                return HF_E_INVALID;
        r->key = trim(word);
        return finish(r, open + 1, ',', false);
}

static int parse_requirement(struct hfd_requirement *r, char *text, bool fields) {
        char *op;

        text = trim(text);
        if (!fields && strchr(text, '('))
                return parse_set(r, text);
        if (!fields && *text == '!' && !strchr(text, '=')) {
                r->op = HFD_NOT_EXISTS;
                r->key = trim(text + 1);
                return hfd_is_qualified_name(r->key) ? 0 : HF_E_INVALID;
        }
        op = strpbrk(text, fields ? "=!" : "=!<>");
        if (!op) {
                r->op = HFD_EXISTS;
                r->key = text;
                return !fields && hfd_is_qualified_name(text) ? 0 : HF_E_INVALID;
        }
        char *value = op + 1;
        r->op = *op == '!'   ? HFD_NOT_EQUALS
                : *op == '<' ? HFD_LESS
                : *op == '>' ? HFD_GREATER
                             : HFD_EQUALS;
        if (*op == '!' && *value++ != '=')
                return HF_E_INVALID;
        if (*op == '=' && *value == '=')
                value++;
        *op = '\0';
        r->key = trim(text);
        return finish(r, value, '\0', fields);
}

static bool field_known(const struct hfd_resource *resource, const char *key) {
        static const char *const of_events[] = {"involvedObject.kind",
                                                "involvedObject.namespace",
                                                "involvedObject.name",
                                                "involvedObject.uid",
                                                "involvedObject.apiVersion",
                                                "involvedObject.resourceVersion",
                                                "involvedObject.fieldPath",
                                                "reason",
                                                "type",
                                                "source",
                                                "reportingComponent"};

        if (strcmp(key, "metadata.name") == 0 ||
            (resource->namespaced && strcmp(key, "metadata.namespace") == 0))
                return true;
        if (strcmp(resource->plural, "secrets") == 0)
                return strcmp(key, "type") == 0;
        if (strcmp(resource->plural, "namespaces") == 0)
                return strcmp(key, "status.phase") == 0;
        for (size_t i = 0;
             strcmp(resource->plural, "events") == 0 && i < sizeof of_events / sizeof of_events[0];
             i++)
                if (strcmp(key, of_events[i]) == 0)
                        return true;
        return false;
}

int hfd_selector_parse(const char *text, bool fields, const struct hfd_resource *resource,
                       struct hfd_selector *ret_selector, char *reason, size_t max_reason) {
        struct hfd_selector selector = {.fields = fields};
        int depth = 0, r = 0;

        if (!text || !*text)
                goto done;
        selector.text = strdup(text);
        selector.requirements = calloc(HFD_REQUIREMENTS_MAX, sizeof *selector.requirements);
        r = selector.text && selector.requirements ? 0 : -ENOMEM;
        for (char *item = selector.text, *c = item; !r; c++) {
                depth += *c == '(' ? 1 : *c == ')' ? -1 : 0;
                if (*c && (*c != ',' || depth > 0))
                        continue;
                bool last = !*c;
                *c = '\0';
                if (selector.n == HFD_REQUIREMENTS_MAX)
                        r = HF_E_INVALID;
                else
                        r = parse_requirement(&selector.requirements[selector.n++], item, fields);
                if (!r && fields &&
                    !field_known(resource, selector.requirements[selector.n - 1].key)) {
                        (void)snprintf(reason, max_reason, "field label not supported: %s",
                                       selector.requirements[selector.n - 1].key);
                        hfd_selector_done(&selector);
                        return HF_E_INVALID;
                }
                if (last)
                        break;
                item = c + 1;
        }
        if (r) {
                (void)snprintf(reason, max_reason,
                               "unable to parse requirement: invalid %s selector: %.200s",
                               fields ? "field" : "label", text);
                hfd_selector_done(&selector);
                return r;
        }
done:
        *ret_selector = selector;
        return 0;
}

void hfd_selector_done(struct hfd_selector *selector) {
        for (size_t i = 0; i < selector->n; i++)
                free(selector->requirements[i].values);
        free(selector->requirements);
        free(selector->text);
        *selector = (struct hfd_selector){0};
}

/* ---- matching ---- */

static bool one_of(const struct hfd_requirement *r, const char *value) {
        for (size_t i = 0; i < r->n_values; i++)
                if (strcmp(r->values[i], value) == 0)
                        return true;
        return false;
}

static bool holds(const struct hfd_requirement *r, const char *value) {
        switch (r->op) {
        case HFD_EXISTS: return value != NULL;
        case HFD_NOT_EXISTS: return !value;
        case HFD_EQUALS:
        case HFD_IN: return value && one_of(r, value);
        case HFD_NOT_EQUALS:
        case HFD_NOT_IN: return !value || !one_of(r, value);
        case HFD_GREATER:
                return value && *value &&
                       strtoll(value, NULL, 10) > strtoll(r->values[0], NULL, 10);
        case HFD_LESS:
                return value && *value &&
                       strtoll(value, NULL, 10) < strtoll(r->values[0], NULL, 10);
        }
        return false;
}

static bool field_holds(const struct hfd_requirement *r, struct hfd_object *object) {
        if (strcmp(r->key, "metadata.name") == 0)
                return holds(r, object->name);
        if (strcmp(r->key, "metadata.namespace") == 0) {
                bool same = strlen(r->values[0]) == object->n_ns &&
                            memcmp(r->values[0], object->path, object->n_ns) == 0;
                return same == (r->op == HFD_EQUALS);
        }
        const char *path = strcmp(r->key, "source") != 0 ? r->key : "source.component";
        const char *value = hf__json_string(hfd_object_meta(object), path);
        return holds(r, value ? value : ""); /* an absent field is empty, as a Go struct's */
}

bool hfd_selector_matches(const struct hfd_selector *selector, struct hfd_object *object) {
        for (size_t i = 0; i < selector->n; i++) {
                const struct hfd_requirement *r = &selector->requirements[i];
                if (selector->fields
                            ? !field_holds(r, object)
                            : !holds(r, hf__json_text(
                                                hf__json_get(hf__json_get(hfd_object_meta(object),
                                                                          "labels"),
                                                             r->key))))
                        return false;
        }
        return true;
}

const char *hfd_selector_name(const struct hfd_selector *selector) {
        for (size_t i = 0; i < selector->n; i++)
                if (selector->fields && selector->requirements[i].op == HFD_EQUALS &&
                    strcmp(selector->requirements[i].key, "metadata.name") == 0)
                        return selector->requirements[i].values[0];
        return NULL;
}
