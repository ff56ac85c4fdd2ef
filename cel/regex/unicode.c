/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the classes of Unicode that patterns name, and the class of a character.
 *
 * Invariant: the known names, and the ways in which a pattern may write them, are those of the
 * regexp package of Go, which Kubernetes uses.
 */
#include "cel/regex/unicode.h"

#include <string.h>

#include "cel/regex/unicode_names.h"
#include "cel/regex/unicode_ranges.h"

#define NAME_MAX_BYTES 40       /* with the NUL; the names of the tables are shorter */
#define LAST           0x10ffff /* the greatest code point */
#define ALL            UINT32_MAX
#define STEP_RUNS      8 /* runs of a table that are read in a step of work */
/* The categories C and Z, whose bits unicode_names.c has: if that table is made anew and they
 * change, this number must change too. */
#define NOT_PRINTED 0x3800001f

/* A class: all runs of a table (unicode_ranges.h) that belong to it. */
struct class {
        const uint32_t *runs; /* static */
        size_t n;
        uint32_t classes; /* of a category: bit i is set if runs of class i belong to it */
        uint32_t script;  /* of a script: its number; 0: the class is a category */
};

/* Brings a name into the form of the tables: "lower case-letter" becomes "Lowercaseletter". False:
 * the name is empty, or longer than all names. */
static bool canonical_name(const char *name, size_t n, char out[static NAME_MAX_BYTES]) {
        size_t length = 0;

        for (size_t i = 0; i < n; i++) {
                char c = name[i];

                if (c == '_' || c == '-' || c == ' ')
                        continue;
                if (length + 1 == NAME_MAX_BYTES)
                        return false;
                if (length == 0 && c >= 'a' && c <= 'z')
                        c = (char)(c - 'a' + 'A');
                else if (length > 0 && c >= 'A' && c <= 'Z')
                        c = (char)(c - 'A' + 'a');
                out[length++] = c;
        }
        out[length] = 0;
        return length > 0;
}

/* Takes time in proportion to the number of names, about 200, for each class of a pattern. */
static bool find_class(const char *name, struct class *ret_class) {
        *ret_class = (struct class){.runs = hf__cel_category_runs, .n = hf__cel_n_category_runs};
        if (strcmp(name, "Any") == 0) {
                ret_class->classes = ALL;
                return true;
        }
        for (size_t i = 0; i < hf__cel_n_categories; i++)
                if (strcmp(hf__cel_categories[i].name, name) == 0) {
                        ret_class->classes = hf__cel_categories[i].classes;
                        return true;
                }
        for (size_t i = 0; i < hf__cel_n_scripts; i++)
                if (strcmp(hf__cel_scripts[i].name, name) == 0) {
                        *ret_class = (struct class){.runs = hf__cel_script_runs,
                                                    .n = hf__cel_n_script_runs,
                                                    .script = hf__cel_scripts[i].number};
                        return true;
                }
        return false;
}

static bool belongs_to_class(const struct class *class, uint32_t run) {
        uint32_t number = run & 0xff;

        return class->script > 0 ? number == class->script : (class->classes >> number & 1) != 0;
}

static bool add_class(struct hf__cel_set_maker *maker, struct hf__cel_set *set,
                      const struct class *class, bool fold) {
        maker->work += class->n / STEP_RUNS;
        for (size_t i = 0; i < class->n; i++) {
                uint32_t first = class->runs[i] >> 8;
                size_t next = i + 1;

                if (!belongs_to_class(class, class->runs[i]))
                        continue;
                /* Neighbouring runs become one range: a class such as L consists of many short runs
                 * of its parts. */
                while (next < class->n && belongs_to_class(class, class->runs[next]))
                        next++;
                if (!hf__cel_set_add(maker, set, first,
                                     next < class->n ? (class->runs[next] >> 8) - 1 : LAST, fold))
                        return false;
                i = next - 1;
        }
        return true;
}

bool hf__cel_set_add_unicode(struct hf__cel_set_maker *maker, struct hf__cel_set *set,
                             const char *name, size_t n, bool negated, bool fold, bool *ret_known) {
        char text[NAME_MAX_BYTES];
        struct hf__cel_set other = {0};
        struct class class;

        if (n > 0 && *name == '^') {
                negated = !negated;
                name++;
                n--;
        }
        *ret_known = canonical_name(name, n, text);
        if (!*ret_known)
                return false;
        if (strcmp(text, "Ascii") == 0)
                return hf__cel_set_add(maker, &other, 0, 0x7f, fold) &&
                       hf__cel_set_finish(maker, &other, negated) &&
                       hf__cel_set_add_set(maker, set, &other);
        if (strcmp(text, "Assigned") == 0) {
                negated = !negated;
                /* The assigned characters are all except those of Cn, the unassigned ones. */
                memcpy(text, "Cn", 3);
        }
        /* The mark U+0345 differs only in case from some cased letters. In Go (?i) does not add the
         * mark to this class, because Go has no table of folds for the class. */
        if (strcmp(text, "Lc") == 0 || strcmp(text, "Casedletter") == 0)
                fold = false;
        *ret_known = find_class(text, &class);
        return *ret_known && add_class(maker, &other, &class, fold) &&
               hf__cel_set_finish(maker, &other, negated) &&
               hf__cel_set_add_set(maker, set, &other);
}

bool hf__cel_unicode_is_printed(uint32_t character) {
        size_t low = 0;
        size_t high = hf__cel_n_category_runs;

        if (character < 0x80)
                return character >= ' ' && character < 0x7f;
        while (high - low > 1) { /* run `low` never begins after the character: run 0 begins at 0 */
                size_t middle = low + (high - low) / 2;

                if (hf__cel_category_runs[middle] >> 8 <= character)
                        low = middle;
                else
                        high = middle;
        }
        return (NOT_PRINTED >> (hf__cel_category_runs[low] & 0xff) & 1) == 0;
}

bool hf__cel_unicode_is_space(uint32_t character) {
        return (character >= 9 && character <= 13) || character == ' ' || character == 0x85 ||
               character == 0xa0 || character == 0x1680 ||
               (character >= 0x2000 && character <= 0x200a) || character == 0x2028 ||
               character == 0x2029 || character == 0x202f || character == 0x205f ||
               character == 0x3000;
}
