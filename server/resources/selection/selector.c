/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selectors. A label selector is a list of requirements, separated by commas that are not in
 * parentheses. White space around keys, operators and values has no meaning:
 *
 *      key    !key    key=value    key==value    key!=value    key>1    key<1
 *      key in (a,b)   key notin (a,b)
 *
 * A field selector has only the forms with =, == and !=, and only fields that Kubernetes supports
 * for the resource. In it spaces and parentheses are parts of keys and values, and the values have
 * a backslash in front of a comma, a '=' and a backslash. Requirements may be empty.
 *
 * Invariant: parsing writes NULs into selector->text, and keys and values point into the text. So
 * the text lives as long as the requirements.
 */
#include "server/resources/selection/selector.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/custom/custom_selectable.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/validation/names.h"

/* A selector of Events may name this field. Its value is source.component or, if that is empty, as
 * in newer Events, reportingComponent. */
#define SOURCE "source"
#define SPACES " \t\r\n" /* what separates in label selectors */

/* ---- parsing one requirement ---- */

/* Cuts white space off both ends, in place. */
static char *trim_spaces(char *text) {
        text += strspn(text, SPACES);
        char *end = text + strlen(text);
        while (end > text && strchr(SPACES, end[-1]))
                end--;
        *end = '\0';
        return text;
}

static bool is_number(const char *text) {
        char *end;

        errno = 0;
        (void)strtoll(text, &end, 10);
        return *text && errno == 0 && *end == '\0';
}

/* Every value must be possible as the value of a label. The bounds of < and > must be numbers,
 * too. */
static bool values_are_valid(const struct hfd_requirement *requirement) {
        bool bound = requirement->op == HFD_GREATER || requirement->op == HFD_LESS;

        for (size_t i = 0; i < requirement->n_values; i++) {
                const char *value = requirement->values[i];
                if (!hfd_is_label_value(value) || (bound && !is_number(value)))
                        return false;
        }
        return true;
}

/* Splits list in place at each separator. separator '\0': list is a single value. 0 or -ENOMEM. */
static int split_values(struct hfd_requirement *requirement, char *list, char separator) {
        size_t n = 1;

        assert(!requirement->values);
        for (char *c = list; separator != '\0' && *c; c++)
                n += *c == separator;
        requirement->values = calloc(n, sizeof *requirement->values);
        if (!requirement->values)
                return -ENOMEM;
        for (char *next = list; next; list = next) {
                next = separator != '\0' ? strchr(list, separator) : NULL;
                if (next)
                        *next++ = '\0';
                requirement->values[requirement->n_values++] = trim_spaces(list);
        }
        assert(requirement->n_values == n);
        return 0;
}

/*
 * Completes a requirement whose key and operator are set: checks the key, then splits and checks
 * the values. 0, -ENOMEM or HF_E_INVALID.
 */
static int finish_requirement(struct hfd_requirement *requirement, char *list, char separator) {
        if (!hfd_is_qualified_name(requirement->key))
                return HF_E_INVALID;
        int r = split_values(requirement, list, separator);
        if (r == 0 && !values_are_valid(requirement))
                r = HF_E_INVALID;
        return r;
}

/* Cuts white space and the word off the end of text. False: text does not end with both. */
static bool remove_last_word(char *text, const char *word) {
        size_t n = strlen(text), n_word = strlen(word);

        if (n <= n_word + 1 || !strchr(SPACES, text[n - n_word - 1]) ||
            strcmp(text + n - n_word, word) != 0)
                return false;
        text[n - n_word - 1] = '\0';
        return true;
}

/* `key in (a,b)`, `key notin (a,b)` */
static int parse_set(struct hfd_requirement *requirement, char *text) {
        char *open = strchr(text, '('), *close = strrchr(text, ')');

        if (!open || !close || close < open || *trim_spaces(close + 1))
                return HF_E_INVALID;
        *open = *close = '\0';
        char *head = trim_spaces(text);
        if (remove_last_word(head, "notin"))
                requirement->op = HFD_NOT_IN;
        else if (remove_last_word(head, "in"))
                requirement->op = HFD_IN;
        else
                return HF_E_INVALID;
        requirement->key = trim_spaces(head);
        return finish_requirement(requirement, open + 1, ',');
}

/* `key`, `!key` */
static int parse_existence(struct hfd_requirement *requirement, char *text) {
        requirement->op = *text == '!' ? HFD_NOT_EXISTS : HFD_EXISTS;
        requirement->key = *text == '!' ? trim_spaces(text + 1) : text;
        return hfd_is_qualified_name(requirement->key) ? 0 : HF_E_INVALID;
}

/* Parses the operator at *at, and advances *at past the operator. False: a '!' without '='. */
static bool parse_operator(char **at, enum hfd_selector_op *ret_op) {
        char first = *(*at)++;

        switch (first) {
        case '<': *ret_op = HFD_LESS; return true;
        case '>': *ret_op = HFD_GREATER; return true;
        case '!': *ret_op = HFD_NOT_EQUALS; return *(*at)++ == '=';
        default:
                assert(first == '=');
                *ret_op = HFD_EQUALS;
                if (**at == '=') /* "==" is the same as "=" */
                        (*at)++;
                return true;
        }
}

/* A valid key or value contains no parenthesis, so '(' identifies the forms with a set. */
static int parse_label(struct hfd_requirement *requirement, char *text) {
        text = trim_spaces(text);
        if (strchr(text, '('))
                return parse_set(requirement, text);
        if (*text == '!' && !strchr(text, '='))
                return parse_existence(requirement, text);
        char *op = strpbrk(text, "=!<>"), *value = op;
        if (!op)
                return parse_existence(requirement, text);
        if (!parse_operator(&value, &requirement->op))
                return HF_E_INVALID;
        *op = '\0';
        requirement->key = trim_spaces(text);
        return finish_requirement(requirement, value, '\0');
}

/* Removes the backslashes of a field's value in place. 0, or HF_E_INVALID with the reason. */
static int unescape(char *value, char *reason, size_t max_reason) {
        const char *in = value;
        char *out = value;

        for (; *in; *out++ = *in++) {
                if (*in == '=' || *in == ',') {
                        (void)snprintf(reason, max_reason,
                                       "invalid field selector: unescaped character in value: %d",
                                       *in);
                        return HF_E_INVALID;
                }
                if (*in != '\\')
                        continue;
                in++;
                if (*in == '\\' || *in == ',' || *in == '=')
                        continue;
                int n = *in != '\0';
                while (((unsigned char)in[n] & 0xc0) == 0x80)
                        n++; /* the whole character, which may have more bytes */
                (void)snprintf(reason, max_reason,
                               "invalid field selector: invalid escape sequence: \\%.*s", n, in);
                return HF_E_INVALID;
        }
        *out = '\0';
        return 0;
}

/* Parses the requirement `term` of the field selector `text`. The key may be any text: find_field
 * checks whether the field is supported. 0, -ENOMEM, or HF_E_INVALID with the reason. */
static int parse_field(struct hfd_requirement *requirement, char *term, const char *text,
                       char *reason, size_t max_reason) {
        char *op = strpbrk(term, "=!");

        while (op && *op == '!' && op[1] != '=')
                op = strpbrk(op + 1, "=!");
        if (!op) {
                (void)snprintf(reason, max_reason,
                               "invalid selector: '%.120s'; can't understand '%.120s'", text, term);
                return HF_E_INVALID;
        }
        char *value = op;
        (void)parse_operator(&value, &requirement->op); /* is one, because op is "=" or "!=" */
        *op = '\0';
        requirement->key = term;
        requirement->values = calloc(1, sizeof *requirement->values);
        if (!requirement->values)
                return -ENOMEM;
        requirement->values[requirement->n_values++] = value;
        return unescape(value, reason, max_reason);
}

/* ---- parsing a selector ---- */

/* The fields of Events that selectors may name, with their names in the stored form. */
static const char *const event_fields[] = {"involvedObject.kind",
                                           "involvedObject.namespace",
                                           "involvedObject.name",
                                           "involvedObject.uid",
                                           "involvedObject.apiVersion",
                                           "involvedObject.resourceVersion",
                                           "involvedObject.fieldPath",
                                           "reason",
                                           "type",
                                           SOURCE,
                                           "reportingComponent"};

static bool is_event(const struct hfd_resource *resource) {
        const struct hfd_resource *stored = hfd_resource_stored(resource);

        return !*stored->group && strcmp(stored->plural, "events") == 0;
}

static bool is_certificate_request(const struct hfd_resource *resource) {
        return strcmp(resource->plural, "certificatesigningrequests") == 0;
}

/* Whether selectors of this resource may name other fields than name and namespace. */
static bool has_own_fields(const struct hfd_resource *resource) {
        return is_event(resource) || is_certificate_request(resource) ||
               (!*resource->group && (strcmp(resource->plural, "secrets") == 0 ||
                                      strcmp(resource->plural, "namespaces") == 0));
}

/* Finds the field of Events that this version calls key. Returns its name in the stored form; NULL
 * = selectors may not name such a field. */
static const char *find_event_field(const struct hfd_resource *resource, const char *key) {
        char name[80];

        for (size_t i = 0; i < sizeof event_fields / sizeof event_fields[0]; i++) {
                /* SOURCE is not the member `source`, so it has the same name in both versions. */
                if (strcmp(event_fields[i], SOURCE) == 0)
                        (void)snprintf(name, sizeof name, "%s", SOURCE);
                else
                        hfd_conversion_field(resource, event_fields[i], name, sizeof name);
                if (strcmp(key, name) == 0)
                        return event_fields[i];
        }
        return NULL;
}

/*
 * If Kubernetes supports the field in selectors of this resource, returns its name in the stored
 * form, which is key itself or static. NULL: the field is not supported.
 */
static const char *find_field(const struct hfd_resource *resource, const char *key) {
        bool known;

        if (strcmp(key, "metadata.name") == 0)
                return key;
        if (strcmp(key, "metadata.namespace") == 0)
                return resource->namespaced ? key : NULL;
        if (is_event(resource))
                return find_event_field(resource, key);
        if (is_certificate_request(resource))
                return strcmp(key, "spec.signerName") == 0 ? key : NULL;
        if (resource->custom)
                return hfd_custom_is_selectable(resource->custom, key) ? key : NULL;
        if (*resource->group)
                return NULL;
        known = (strcmp(resource->plural, "secrets") == 0 && strcmp(key, "type") == 0) ||
                (strcmp(resource->plural, "namespaces") == 0 && strcmp(key, "status.phase") == 0);
        return known ? key : NULL;
}

/* Replaces the key of a field by its name in the stored form. False: the field is not supported. */
static bool find_stored_key(struct hfd_requirement *requirement,
                            const struct hfd_resource *resource) {
        const char *stored = find_field(resource, requirement->key);

        requirement->has_static_key = stored && stored != requirement->key;
        if (stored)
                requirement->key = stored;
        return stored != NULL;
}

/* Parses one requirement and adds it. text is the whole selector, which the error message
 * quotes. */
static int add_requirement(struct hfd_selector *selector, char *item,
                           const struct hfd_resource *resource, const char *text, char *reason,
                           size_t max_reason) {
        if (selector->n == HFD_REQUIREMENTS_MAX) {
                (void)snprintf(reason, max_reason, "more than %d requirements in the %s selector",
                               HFD_REQUIREMENTS_MAX, selector->fields ? "field" : "label");
                return HF_E_INVALID;
        }
        struct hfd_requirement *requirement = &selector->requirements[selector->n++];
        int r = selector->fields ? parse_field(requirement, item, text, reason, max_reason)
                                 : parse_label(requirement, item);
        if (r == HF_E_INVALID && !selector->fields)
                (void)snprintf(reason, max_reason,
                               "unable to parse requirement: invalid label selector: %.200s", text);
        if (r != 0)
                return r;
        /* Kubernetes has one message for built-in kinds whose selectors have only name and
         * namespace, and another one for other built-in kinds and custom resources. */
        if (selector->fields && !find_stored_key(requirement, resource)) {
                bool only_names = !resource->no_strategic_patch && !has_own_fields(resource);
                (void)snprintf(reason, max_reason,
                               only_names ? "\"%s\" is not a known field selector: only "
                                            "\"metadata.name\", \"metadata.namespace\""
                                          : "field label not supported: %s",
                               requirement->key);
                return HF_E_INVALID;
        }
        return 0;
}

/* The comma after the requirement that begins at c, or the end of the text. */
static char *find_end(char *c, bool fields) {
        int depth = 0;

        for (; *c && (*c != ',' || depth > 0); c++) {
                if (fields && *c == '\\' && c[1])
                        c++; /* an escaped comma is a part of the value */
                if (!fields && *c == '(')
                        depth++;
                if (!fields && *c == ')')
                        depth--;
        }
        return c;
}

/* Splits selector->text into requirements, and parses each of them. */
static int parse_requirements(struct hfd_selector *selector, const struct hfd_resource *resource,
                              const char *text, char *reason, size_t max_reason) {
        char *item = selector->text;

        for (;;) {
                char *end = find_end(item, selector->fields);
                bool last = *end == '\0';
                int r = 0;
                *end = '\0';
                if (!selector->fields || *item)
                        r = add_requirement(selector, item, resource, text, reason, max_reason);
                if (r != 0 || last)
                        return r;
                item = end + 1;
        }
}

/* Gives back the unused space, because a watch keeps its selector for long. */
static void fit(struct hfd_selector *selector) {
        if (selector->n == 0) {
                bool fields = selector->fields;
                hfd_selector_done(selector); /* only empty requirements */
                selector->fields = fields;
                return;
        }
        struct hfd_requirement *fitted =
                realloc(selector->requirements, selector->n * sizeof *fitted);
        if (fitted)
                selector->requirements = fitted;
}

int hfd_selector_parse(const char *text, bool fields, const struct hfd_resource *resource,
                       struct hfd_selector *ret_selector, char *reason, size_t max_reason) {
        struct hfd_selector selector = {.fields = fields};
        int r = -ENOMEM;

        if (!text || !text[fields ? 0 : strspn(text, SPACES)]) {
                *ret_selector = selector;
                return 0;
        }
        selector.text = strdup(text);
        selector.n_text = strlen(text);
        selector.requirements = calloc(HFD_REQUIREMENTS_MAX, sizeof *selector.requirements);
        if (selector.text && selector.requirements)
                r = parse_requirements(&selector, resource, text, reason, max_reason);
        if (r != 0) {
                hfd_selector_done(&selector);
                return r;
        }
        fit(&selector);
        *ret_selector = selector;
        return 0;
}

/* Keys and values of the copy have the same offsets in the copied text as those of the original in
 * its text. A static key is shared. 0 or -ENOMEM. */
static int copy_requirement(struct hfd_requirement *copy, const struct hfd_requirement *from,
                            char *text, const char *from_text) {
        *copy = (struct hfd_requirement){.op = from->op,
                                         .has_static_key = from->has_static_key,
                                         .key = from->key};
        if (!from->has_static_key)
                copy->key = text + (from->key - from_text);
        if (from->n_values == 0)
                return 0;
        copy->values = calloc(from->n_values, sizeof *copy->values);
        if (!copy->values)
                return -ENOMEM;
        for (; copy->n_values < from->n_values; copy->n_values++)
                copy->values[copy->n_values] = text + (from->values[copy->n_values] - from_text);
        return 0;
}

int hfd_selector_copy(struct hfd_selector *ret_copy, const struct hfd_selector *selector) {
        struct hfd_selector copy = {.fields = selector->fields, .n_text = selector->n_text};
        int r = 0;

        *ret_copy = (struct hfd_selector){0};
        if (selector->n > 0) {
                copy.text = malloc(selector->n_text + 1);
                copy.requirements = calloc(selector->n, sizeof *copy.requirements);
                if (!copy.text || !copy.requirements) {
                        hfd_selector_done(&copy);
                        return -ENOMEM;
                }
                memcpy(copy.text, selector->text, selector->n_text + 1);
        }
        for (; r == 0 && copy.n < selector->n; copy.n++)
                r = copy_requirement(&copy.requirements[copy.n], &selector->requirements[copy.n],
                                     copy.text, selector->text);
        if (r != 0) {
                hfd_selector_done(&copy);
                return r;
        }
        *ret_copy = copy;
        return 0;
}

static bool is_same_requirement(const struct hfd_requirement *a, const struct hfd_requirement *b) {
        bool same = a->op == b->op && strcmp(a->key, b->key) == 0 && a->n_values == b->n_values;

        for (size_t i = 0; same && i < a->n_values; i++)
                same = strcmp(a->values[i], b->values[i]) == 0;
        return same;
}

bool hfd_selector_equal(const struct hfd_selector *a, const struct hfd_selector *b) {
        bool same = a->n == b->n;

        for (size_t i = 0; same && i < a->n; i++)
                same = is_same_requirement(&a->requirements[i], &b->requirements[i]);
        return same;
}

void hfd_selector_done(struct hfd_selector *selector) {
        for (size_t i = 0; i < selector->n; i++)
                free(selector->requirements[i].values);
        free(selector->requirements);
        free(selector->text);
        *selector = (struct hfd_selector){0};
}

/* ---- matching ---- */

static bool has_value(const struct hfd_requirement *requirement, const char *value) {
        for (size_t i = 0; i < requirement->n_values; i++)
                if (strcmp(requirement->values[i], value) == 0)
                        return true;
        return false;
}

/* As in Kubernetes, a label that is absent or not a number satisfies neither < nor >. */
static bool compares(const struct hfd_requirement *requirement, const char *value) {
        if (!value || !is_number(value))
                return false;
        long long number = strtoll(value, NULL, 10);
        long long bound = strtoll(requirement->values[0], NULL, 10);
        return requirement->op == HFD_GREATER ? number > bound : number < bound;
}

/* As in Kubernetes, an absent label (value NULL) satisfies != and notin. */
static bool requirement_holds(const struct hfd_requirement *requirement, const char *value) {
        switch (requirement->op) {
        case HFD_EXISTS: return value != NULL;
        case HFD_NOT_EXISTS: return !value;
        case HFD_EQUALS:
        case HFD_IN: return value && has_value(requirement, value);
        case HFD_NOT_EQUALS:
        case HFD_NOT_IN: return !value || !has_value(requirement, value);
        case HFD_GREATER:
        case HFD_LESS: return compares(requirement, value);
        }
        return false;
}

/* The next two functions set *ret_holds, and return 0 or -ENOMEM. */
static int check_label(const struct hfd_requirement *requirement, struct hfd_object *object,
                       bool *ret_holds) {
        const struct hf__json *selectable = hfd_object_selectable(object);

        if (!selectable)
                return -ENOMEM;
        const struct hf__json *labels = hf__json_get(selectable, "labels");
        *ret_holds = requirement_holds(requirement,
                                       hf__json_text(hf__json_get(labels, requirement->key)));
        return 0;
}

/* Reads name and namespace from the path of the object, so that the object need not be parsed. */
static int check_field(const struct hfd_requirement *requirement, struct hfd_object *object,
                       bool *ret_holds) {
        if (strcmp(requirement->key, "metadata.name") == 0) {
                *ret_holds = requirement_holds(requirement, hfd_object_name(object));
                return 0;
        }
        if (strcmp(requirement->key, "metadata.namespace") == 0) {
                const char *wanted = requirement->values[0];
                bool same = strlen(wanted) == object->n_ns &&
                            memcmp(wanted, object->path, object->n_ns) == 0;
                *ret_holds = same == (requirement->op == HFD_EQUALS);
                return 0;
        }
        bool source = strcmp(requirement->key, SOURCE) == 0;
        const struct hf__json *selectable = hfd_object_selectable(object);
        if (!selectable)
                return -ENOMEM;
        const char *value =
                hf__json_string(selectable, source ? "source.component" : requirement->key);
        if (source && (!value || !*value))
                value = hf__json_string(selectable, "reportingComponent");
        /* As in Kubernetes, a missing field equals the empty string. */
        *ret_holds = requirement_holds(requirement, value ? value : "");
        return 0;
}

int hfd_selector_matches(const struct hfd_selector *selector, struct hfd_object *object,
                         bool *ret_matches) {
        bool holds = true;
        int r = 0;

        for (size_t i = 0; r == 0 && holds && i < selector->n; i++) {
                const struct hfd_requirement *requirement = &selector->requirements[i];
                r = selector->fields ? check_field(requirement, object, &holds)
                                     : check_label(requirement, object, &holds);
        }
        *ret_matches = r == 0 && holds;
        return r;
}

const char *hfd_selector_name(const struct hfd_selector *selector) {
        for (size_t i = 0; selector->fields && i < selector->n; i++) {
                const struct hfd_requirement *requirement = &selector->requirements[i];
                if (requirement->op == HFD_EQUALS && strcmp(requirement->key, "metadata.name") == 0)
                        return requirement->values[0];
        }
        return NULL;
}
