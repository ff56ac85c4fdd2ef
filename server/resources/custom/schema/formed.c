/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognizes stored objects that have the form of a schema already, by one look at their text. So
 * most events of the store, and most objects at a start, need no parser: an instance writes objects
 * in the form of their definition, and definitions rarely change.
 *
 * Invariants: a text that is accepted is what hfd_object_encode makes of it after prune and default
 * (unknown_fields.c, default.c; whatever these do differently in future must be refused here). In
 * doubt a text is refused, which costs only time. No byte behind the text is read, whatever it is,
 * and the recursion is bounded.
 */
#include <assert.h>
#include <string.h>

#include "base/json_plain.h"
#include "base/text.h"
#include "base/utf8.h"
#include "server/resources/custom/schema/compile/node.h"
#include "server/resources/custom/schema/custom_schema.h"

#define DEPTH_MAX  64  /* bounds the recursion; a text that is nested more deeply is refused */
#define DIGITS_MAX 15  /* whole numbers of at most so many digits are printed as written */
#define KEY_MAX    256 /* bytes of a key that is looked up, with the NUL */

struct scan {
        const char *at, *end;
        unsigned depth;
};

/* The place in the schema. */
struct place {
        const struct hfd_custom_node *node; /* NULL = no schema */
        bool preserve;                      /* unknown fields are kept, with all that is in them */
        bool is_root;
        bool is_metadata; /* of the object itself */
};

static bool scan_value(struct scan *scan, struct place place);

static bool take_char(struct scan *scan, char c) {
        if (scan->at == scan->end || *scan->at != c)
                return false;
        scan->at++;
        return true;
}

static bool take_word(struct scan *scan, const char *word) {
        size_t n = strlen(word);

        if ((size_t)(scan->end - scan->at) < n || memcmp(scan->at, word, n) != 0)
                return false;
        scan->at += n;
        return true;
}

/* Takes a string in which each escape is one that hf__strbuf_json writes, such as \n. An escape
 * with digits (\u0001) is refused: it counts as a case of doubt. The test for a NUL is needed
 * because strchr would find it. */
static bool take_string(struct scan *scan) {
        if (!take_char(scan, '"'))
                return false;
        for (;;) {
                scan->at = hf__json_skip_plain(scan->at, scan->end);
                if (take_char(scan, '"'))
                        return true;
                if (!take_char(scan, '\\') || scan->at == scan->end || !*scan->at ||
                    !strchr("\"\\nrtbf", *scan->at))
                        return false;
                scan->at++;
        }
}

static bool take_number(struct scan *scan) {
        bool is_negative = take_char(scan, '-');
        const char *digits = scan->at;

        while (scan->at < scan->end && hf__is_digit(*scan->at))
                scan->at++;
        size_t n = (size_t)(scan->at - digits);
        if (n == 0 || n > DIGITS_MAX || (*digits == '0' && (n > 1 || is_negative)))
                return false;
        return scan->at == scan->end || !strchr(".eE+-", *scan->at);
}

/* ---- objects ---- */

/* A key, which must need no escape. */
static bool take_key(struct scan *scan, char key[KEY_MAX]) {
        const char *begin = scan->at + 1;

        if (!take_string(scan) || !take_char(scan, ':'))
                return false;
        size_t n = (size_t)(scan->at - begin) - 2; /* without the second quote and the colon */
        if (n >= KEY_MAX || memchr(begin, '\\', n))
                return false;
        memcpy(key, begin, n);
        key[n] = '\0';
        return true;
}

static bool is_null(const struct scan *scan) { return scan->at < scan->end && *scan->at == 'n'; }

/* The bit of a property among the defaults of its node; 0 = it has none. A node has at most 64
 * defaults here (is_simple). */
static uint64_t bit_of_default(const struct hfd_custom_node *node,
                               const struct hfd_custom_property *property) {
        for (uint32_t i = 0; property && property->node->default_value && i < node->n_defaults; i++)
                if (&node->properties[node->defaults[i]] == property)
                        return (uint64_t)1 << i;
        return 0;
}

static uint64_t all_defaults(const struct hfd_custom_node *node) {
        return node && node->n_defaults > 0 ? ~(uint64_t)0 >> (64 - node->n_defaults) : 0;
}

/* The place of a member of an object. False: pruning would remove the member. */
static bool enter_property(struct place place, const char *key,
                           const struct hfd_custom_property *property, struct place *ret_below) {
        const struct hfd_custom_node *node = place.node;

        *ret_below = (struct place){.preserve = true};
        if (place.is_root && strcmp(key, "metadata") == 0) {
                ret_below->node = property ? property->node : NULL;
                ret_below->is_metadata = true;
                return true;
        }
        if (property)
                ret_below->node = property->node;
        else if (node && node->additional != HFD_CUSTOM_ADDITIONAL_NONE)
                ret_below->node = node->values;
        else
                return place.preserve || (place.is_root && (strcmp(key, "apiVersion") == 0 ||
                                                            strcmp(key, "kind") == 0));
        ret_below->preserve = ret_below->node && ret_below->node->preserve;
        return true;
}

/* Metadata that hfd_object_encode leaves out. */
static bool is_left_out(const struct scan *scan, const char *key) {
        return strcmp(key, "resourceVersion") == 0 || strcmp(key, "selfLink") == 0 || is_null(scan);
}

/* Kind, apiVersion and metadata of the object come first, in this order, and once. */
static bool is_in_order(const char *key, size_t i) {
        static const char *const first[] = {"kind", "apiVersion", "metadata"};
        const size_t n = sizeof first / sizeof first[0];

        if (i < n)
                return strcmp(key, first[i]) == 0;
        for (size_t k = 0; k < n; k++)
                if (strcmp(key, first[k]) == 0)
                        return false;
        return true;
}

static bool scan_member(struct scan *scan, struct place place, size_t i, uint64_t *found) {
        char key[KEY_MAX];
        struct place below;

        if (!place.node && place.preserve && !place.is_root && !place.is_metadata)
                return take_string(scan) && take_char(scan, ':') && scan_value(scan, place);
        if (!take_key(scan, key) || (place.is_root && !is_in_order(key, i)) ||
            (place.is_metadata && is_left_out(scan, key)))
                return false;
        const struct hfd_custom_property *property = hfd_custom_property(place.node, key);
        if (!enter_property(place, key, property, &below))
                return false;
        *found |= property ? bit_of_default(place.node, property) : 0;
        if (below.node && !below.node->nullable && is_null(scan))
                return false;
        return scan_value(scan, below);
}

static bool scan_object(struct scan *scan, struct place place) {
        const uint64_t wanted = all_defaults(place.node);
        uint64_t found = 0;

        for (size_t i = 0; !take_char(scan, '}'); i++)
                if ((i > 0 && !take_char(scan, ',')) || !scan_member(scan, place, i, &found))
                        return false;
        return found == wanted;
}

/* ---- arrays ---- */

static bool scan_array(struct scan *scan, struct place place) {
        const struct hfd_custom_node *items = place.node ? place.node->items : NULL;
        const struct place below = {.node = items,
                                    .preserve = place.preserve || (items && items->preserve)};

        for (size_t i = 0; !take_char(scan, ']'); i++) {
                if (i > 0 && !take_char(scan, ','))
                        return false;
                /* A null becomes the default, if there is one. */
                if (items && !items->nullable && items->default_value && is_null(scan))
                        return false;
                if (!scan_value(scan, below))
                        return false;
        }
        return true;
}

/* ---- values ---- */

/* Whether objects and arrays of the node are scanned at all. Pruning decodes the metadata of
 * embedded resources, which needs parsed JSON; and each default must have a bit in a uint64_t. */
static bool is_simple(const struct hfd_custom_node *node) {
        return !node || (!node->embedded && node->n_defaults <= 64);
}

static bool scan_value(struct scan *scan, struct place place) {
        bool good;

        if (scan->at == scan->end)
                return false;
        switch (*scan->at) {
        case '"': return take_string(scan);
        case 't': return take_word(scan, "true");
        case 'f': return take_word(scan, "false");
        case 'n': return take_word(scan, "null");
        case '{':
        case '[':
                if (scan->depth == DEPTH_MAX || !is_simple(place.node))
                        return false;
                scan->depth++;
                good = *scan->at++ == '{' ? scan_object(scan, place) : scan_array(scan, place);
                assert(scan->depth > 0);
                scan->depth--;
                return good;
        default: return take_number(scan);
        }
}

bool hfd_custom_schema_is_formed(const struct hfd_custom_schema *schema, const char *data,
                                 size_t n) {
        struct scan scan = {.at = data, .end = data + n};
        const struct place root = {.node = schema->root,
                                   .preserve = !schema->root || schema->root->preserve,
                                   .is_root = true};

        assert(data || n == 0);
        return n > 0 && *data == '{' && scan_value(&scan, root) && scan.at == scan.end &&
               hf__utf8_valid(data, n);
}
