/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selectors. label_parser.c parses label selectors, requirement.c the requirements of field
 * selectors, and selectable_fields.c has the fields that these may name. A label selector is a list
 * of requirements, separated by commas that are not in parentheses. White space around keys,
 * operators and values has no meaning:
 *
 *      key    !key    key=value    key==value    key!=value    key>1    key<1
 *      key in (a,b)   key notin (a,b)
 *
 * A field selector has only the forms with =, == and !=, and only fields that Kubernetes supports
 * for the resource. In it spaces and parentheses are parts of keys and values, and the values have
 * a backslash in front of a comma, a '=' and a backslash. Its empty requirements are passed over,
 * while a label selector must not have any.
 *
 * Invariant: parsing writes NULs into selector->text, and values and non-static keys point into the
 * text. So the text lives as long as the requirements.
 */
#include "server/resources/selection/selector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/fence.h> /* HF_NAME_MAX */

#include "base/cleanup.h"
#include "base/json.h"
#include "server/resources/custom/custom_selectable.h"
#include "server/resources/objects/selectable_values.h"
#include "server/resources/selection/label_parser.h"
#include "server/resources/selection/requirement.h"
#include "server/resources/selection/selectable_fields.h"

/* ---- parsing ---- */

/* Replaces the key of a field by its name in the stored form. False: the field is not supported. */
static bool find_stored_key(struct hfd_requirement *requirement,
                            const struct hfd_resource *resource) {
        const char *stored = hfd_selectable_field(resource, requirement->key);

        requirement->has_static_key = stored && stored != requirement->key;
        if (stored)
                requirement->key = stored;
        return stored != NULL;
}

/* The comma after the requirement that begins at c, or the end of the text. An escaped comma is a
 * part of the value. */
static char *find_end(char *c) {
        for (; *c && *c != ','; c++)
                if (*c == '\\' && c[1])
                        c++;
        return c;
}

/* Divides selector->text at its commas, and sorts the terms, as Kubernetes does: so the first one
 * with a mistake is the first in this order. 0, or HF_E_INVALID with the reason. */
static int divide_terms(struct hfd_selector *selector, char *terms[HFD_REQUIREMENTS_MAX],
                        size_t *ret_n, char *reason, size_t max_reason) {
        size_t n = 0;
        bool is_last = false;

        for (char *term = selector->text, *end; !is_last; term = end + 1) {
                end = find_end(term);
                is_last = *end == '\0';
                *end = '\0';
                if (*term && n == HFD_REQUIREMENTS_MAX) {
                        (void)snprintf(reason, max_reason,
                                       "more than %d requirements in the field selector",
                                       HFD_REQUIREMENTS_MAX);
                        return HF_E_INVALID;
                }
                if (*term)
                        terms[n++] = term;
        }
        hfd_sort_texts(terms, n);
        *ret_n = n;
        return 0;
}

/* Gives each requirement the name of its field in the stored form. As in Kubernetes, a requirement
 * without key and value selects everything. 0, or HF_E_INVALID with the reason. */
static int find_stored_keys(struct hfd_selector *selector, const struct hfd_resource *resource,
                            char *reason, size_t max_reason) {
        size_t n = 0, n_parsed = selector->n;

        for (size_t i = 0; i < n_parsed; i++) {
                struct hfd_requirement *requirement = &selector->requirements[i];
                if (!*requirement->key && !*requirement->values[0]) {
                        free(requirement->values);
                        requirement->values = NULL;
                        continue;
                }
                if (!find_stored_key(requirement, resource)) {
                        hfd_selectable_refuse(resource, requirement->key, reason, max_reason);
                        return HF_E_INVALID;
                }
                struct hfd_requirement kept = *requirement;
                *requirement = (struct hfd_requirement){0};
                selector->requirements[n++] = kept;
        }
        selector->n = n;
        return 0;
}

/* text: the whole selector, which some error messages quote. */
static int parse_fields(struct hfd_selector *selector, const struct hfd_resource *resource,
                        const char *text, char *reason, size_t max_reason) {
        char *terms[HFD_REQUIREMENTS_MAX];
        size_t n = 0;
        int r = divide_terms(selector, terms, &n, reason, max_reason);

        for (size_t i = 0; r == 0 && i < n; i++)
                r = hfd_requirement_parse_field(&selector->requirements[selector->n++], terms[i],
                                                text, reason, max_reason);
        return r == 0 ? find_stored_keys(selector, resource, reason, max_reason) : r;
}

/* Gives back the unused space, because a watch keeps its selector for long. If that fails, the
 * selector keeps the space. */
static void fit_selector(struct hfd_selector *selector) {
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

        if (!text || !text[fields ? 0 : strspn(text, HFD_SELECTOR_SPACES)]) {
                *ret_selector = selector;
                return 0;
        }
        selector.text = strdup(text);
        selector.n_text = strlen(text);
        selector.requirements = calloc(HFD_REQUIREMENTS_MAX, sizeof *selector.requirements);
        if (selector.text && selector.requirements)
                r = fields ? parse_fields(&selector, resource, text, reason, max_reason)
                           : hfd_labels_parse(selector.text, selector.requirements,
                                              HFD_REQUIREMENTS_MAX, &selector.n, reason,
                                              max_reason);
        if (r != 0) {
                hfd_selector_done(&selector);
                return r;
        }
        fit_selector(&selector);
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

/* Fills copy. After a failure, too, hfd_selector_done frees what was made. 0 or -ENOMEM. */
static int copy_requirements(struct hfd_selector *copy, const struct hfd_selector *selector) {
        if (selector->n == 0)
                return 0;
        copy->text = malloc(selector->n_text + 1);
        copy->requirements = calloc(selector->n, sizeof *copy->requirements);
        if (!copy->text || !copy->requirements)
                return -ENOMEM;
        memcpy(copy->text, selector->text, selector->n_text + 1);
        for (; copy->n < selector->n; copy->n++)
                if (copy_requirement(&copy->requirements[copy->n], &selector->requirements[copy->n],
                                     copy->text, selector->text) != 0)
                        return -ENOMEM;
        return 0;
}

int hfd_selector_copy(struct hfd_selector *ret_copy, const struct hfd_selector *selector) {
        *ret_copy = (struct hfd_selector){.fields = selector->fields, .n_text = selector->n_text};
        int r = copy_requirements(ret_copy, selector);
        if (r != 0)
                hfd_selector_done(ret_copy);
        return r;
}

bool hfd_selector_equal(const struct hfd_selector *a, const struct hfd_selector *b) {
        bool same = a->n == b->n;

        for (size_t i = 0; same && i < a->n; i++)
                same = hfd_requirement_equal(&a->requirements[i], &b->requirements[i]);
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

/* check_label and check_field set *ret_holds, and return 0 or -ENOMEM. */
static int check_label(const struct hfd_requirement *requirement, struct hfd_object *object,
                       bool *ret_holds) {
        const struct hf__json *selectable = hfd_object_selectable(object);

        if (!selectable)
                return -ENOMEM;
        const struct hf__json *labels = hf__json_get(selectable, "labels");
        *ret_holds = hfd_requirement_holds(requirement,
                                           hf__json_text(hf__json_get(labels, requirement->key)));
        return 0;
}

/* The value of a field other than name and namespace. NULL: the object has no value. */
static const char *field_value(const struct hfd_resource *resource,
                               const struct hf__json *selectable, const char *key) {
        if (resource->custom)
                return hfd_custom_selectable_text(selectable, key);
        if (strcmp(key, HFD_FIELD_SOURCE) != 0 || !hfd_selectable_is_event(resource))
                return hf__json_string(selectable, key);
        const char *component = hf__json_string(selectable, "source.component");
        return component && *component ? component
                                       : hf__json_string(selectable, "reportingComponent");
}

/* Reads name and namespace from the path of the object, so that the object need not be parsed. */
static int check_field(const struct hfd_requirement *requirement, struct hfd_object *object,
                       bool *ret_holds) {
        if (strcmp(requirement->key, "metadata.name") == 0) {
                *ret_holds = hfd_requirement_holds(requirement, hfd_object_name(object));
                return 0;
        }
        if (strcmp(requirement->key, "metadata.namespace") == 0) {
                const char *wanted = requirement->values[0];
                bool same = strlen(wanted) == object->n_ns &&
                            memcmp(wanted, object->path, object->n_ns) == 0;
                *ret_holds = same == (requirement->op == HFD_EQUALS);
                return 0;
        }
        const struct hf__json *selectable = hfd_object_selectable(object);
        if (!selectable)
                return -ENOMEM;
        const char *value = field_value(object->resource, selectable, requirement->key);
        /* As in Kubernetes, a missing field equals the empty string. */
        *ret_holds = hfd_requirement_holds(requirement, value ? value : "");
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

/* The value that a field selector requires of a field; NULL = any. */
static const char *required_value(const struct hfd_selector *selector, const char *key) {
        for (size_t i = 0; selector->fields && i < selector->n; i++) {
                const struct hfd_requirement *requirement = &selector->requirements[i];
                if (requirement->op == HFD_EQUALS && strcmp(requirement->key, key) == 0)
                        return requirement->values[0];
        }
        return NULL;
}

const char *hfd_selector_name(const struct hfd_selector *selector) {
        return required_value(selector, "metadata.name");
}

const char *hfd_selector_namespace(const struct hfd_selector *selector, const char *ns) {
        const char *required = *ns ? NULL : required_value(selector, "metadata.namespace");

        /* No object is in a namespace with a longer name, and hfd_object_scope takes none. */
        return required && strlen(required) <= HF_NAME_MAX ? required : ns;
}

const char *hfd_selector_trigger(const struct hfd_selector *selector,
                                 const struct hfd_resource *resource) {
        const char *trigger = selector->n > 0 ? hfd_selectable_trigger(resource) : NULL;

        return trigger ? required_value(selector, trigger) : NULL;
}
