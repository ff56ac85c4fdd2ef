/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads regular expressions in the syntax of RE2. It is a parser by recursive descent: a choice
 * consists of sequences, a sequence of repetitions, and a repetition of an atom, which may be a
 * group with a choice in it.
 *
 * Conventions, where the comment of a function says nothing else: functions called parse_ return a
 * node, or NULL after an error, which is in p->r and p->message. Functions called take_ consume a
 * part of the pattern and return whether it was there.
 *
 * Invariants: the recursion is at most DEPTH_MAX groups deep, and at most ROUNDS_MAX repetitions
 * are nested without a group between them. Whatever can need more time or memory than in proportion
 * to the pattern counts as work, and that has a limit (check_work). A pattern that RE2 does not
 * accept is refused with the words of Go's regexp package, because Kubernetes shows these.
 */
#include "cel/regex/syntax.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cel/regex/regex.h"
#include "cel/regex/unicode.h"

/* Groups within groups. Go allows 1000 levels. The functions here recurse on the stack of a worker
 * thread, which is small, and patterns in practice have only a few levels. */
#define DEPTH_MAX  100
#define ROUNDS_MAX 2   /* repetitions of the same part, without a group between: a*(?i)* */
#define STEP_BYTES 16  /* that are written or read in a step of work */
#define SHOWN_MAX  200 /* bytes of a pattern that a message shows */

/* The flags of (?imsU). */
struct flags {
        bool fold;       /* i: ignores case */
        bool multi_line; /* m: ^ matches at the beginning of each line, $ at the end */
        bool dot_all;    /* s: a dot also matches a newline */
        bool lazy;       /* U: x* prefers fewer rounds, and x*? more */
};

struct parser {
        struct hf__cel_set_maker *maker; /* borrowed */
        const char *start;
        const char *at; /* the next byte to read */
        const char *end;
        struct flags flags;
        unsigned depth; /* of groups */
        bool no_posix;  /* what is left of the pattern has no ":]" */
        int r;          /* the first error; 0 = none */
        char *message;
        size_t max_message;
};

static struct hf__cel_regex_node *parse_choice(struct parser *p);

/* Sets the error, unless there is one already: `what`, and the text from `from` to `until`. Always
 * returns NULL, which a caller can return as a node or as false. */
static void *refuse_pattern(struct parser *p, const char *what, const char *from,
                            const char *until) {
        int n = until - from > SHOWN_MAX ? SHOWN_MAX : (int)(until - from);

        /* A text that is cut ends with a whole character. */
        while (n > 0 && from + n < until && ((unsigned char)from[n] & 0xc0) == 0x80)
                n--;
        if (p->r == 0) {
                snprintf(p->message, p->max_message, "error parsing regexp: %s: `%.*s`", what, n,
                         from);
                p->r = HF_E_INVALID;
        }
        return NULL;
}

/* Refuses the pattern by a limit that Go does not have, or has higher. Always returns NULL. */
static void *refuse_by_limit(struct parser *p, const char *what) {
        if (p->r == 0) {
                refuse_pattern(p, what, p->start, p->end);
                p->r = HF_E_TOO_LARGE;
        }
        return NULL;
}

/* NULL: out of memory, which p->r says. */
static struct hf__cel_regex_node *new_node(struct parser *p, enum hf__cel_regex_kind kind) {
        struct hf__cel_regex_node *node = hf__arena_alloc(p->maker->arena, sizeof *node);

        p->maker->work += sizeof *node / STEP_BYTES;
        if (!node) {
                p->r = -ENOMEM;
                return NULL;
        }
        memset(node, 0, sizeof *node);
        node->kind = kind;
        node->copies = 1;
        node->nullable = kind == HF__CEL_REGEX_EMPTY || kind == HF__CEL_REGEX_ASSERTION;
        return node;
}

static bool has_more(const struct parser *p) { return p->at < p->end && p->r == 0; }

static bool peek_text(const struct parser *p, const char *text) {
        size_t n = strlen(text);

        return (size_t)(p->end - p->at) >= n && memcmp(p->at, text, n) == 0;
}

static bool take_text(struct parser *p, const char *text) {
        if (!peek_text(p, text))
                return false;
        p->at += strlen(text);
        return true;
}

/* Returns the next character, which the caller knows to exist. A byte that belongs to no character
 * counts as one replacement character. Go refuses a pattern with such a byte, but the API server
 * refuses it before, with the body of the request. */
static uint32_t take_character(struct parser *p) {
        uint32_t c = 0xfffd;
        size_t n = hf__utf8_decode(p->at, (size_t)(p->end - p->at), &c);

        p->at += n > 0 ? n : 1;
        return n > 0 ? c : 0xfffd;
}

/* Refuses a pattern that has cost too much: a few bytes can name thousands of ranges. false: p->r
 * is set. */
static bool check_work(struct parser *p) {
        return p->maker->work <= HF__CEL_REGEX_WORK_MAX ||
               refuse_by_limit(p, "expression too large");
}

/* Finishes the set of a node. node NULL: an earlier step has failed. */
static struct hf__cel_regex_node *finish_set(struct parser *p, struct hf__cel_regex_node *node,
                                             bool negated) {
        if (!node)
                return NULL;
        if (!hf__cel_set_finish(p->maker, &node->set, negated))
                p->r = -ENOMEM;
        return p->r == 0 && check_work(p) ? node : NULL;
}

/* A single character is a set of one as well. So a pattern that ignores case needs no instruction
 * of its own, and a look-up in such a set is as quick as a comparison. */
static struct hf__cel_regex_node *new_character(struct parser *p, uint32_t c) {
        struct hf__cel_regex_node *node = new_node(p, HF__CEL_REGEX_SET);

        if (node && !hf__cel_set_add(p->maker, &node->set, c, c, p->flags.fold))
                p->r = -ENOMEM;
        return finish_set(p, node, false);
}

static struct hf__cel_regex_node *new_assertion(struct parser *p, enum hf__cel_assertion kind) {
        struct hf__cel_regex_node *node = new_node(p, HF__CEL_REGEX_ASSERTION);

        if (node)
                node->assertion = kind;
        return node;
}

static bool is_alphanumeric(char c) {
        return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* Reads a character, which must be a hexadecimal digit. false: it is none, or the pattern ends. */
static bool take_hex_digit(struct parser *p, uint32_t *ret_digit) {
        uint32_t c = p->at < p->end ? take_character(p) : 0;
        int digit = c < 0x80 ? hf__hex_digit((char)c) : -1;

        *ret_digit = digit >= 0 ? (uint32_t)digit : 0;
        return digit >= 0;
}

/* Reads the digits after "\x": two, or any number of them in braces. False: malformed. As in Go,
 * whose message shows what was read, two characters are read before they are judged. */
static bool take_hex(struct parser *p, uint32_t *ret_c) {
        size_t n_digits = 0;
        uint32_t digit;

        if (!take_text(p, "{")) {
                bool is_high = take_hex_digit(p, ret_c);
                bool is_low = take_hex_digit(p, &digit);

                *ret_c = *ret_c * 16 + digit;
                return is_high && is_low;
        }
        for (*ret_c = 0; !take_text(p, "}"); n_digits++) {
                if (!take_hex_digit(p, &digit))
                        return false;
                *ret_c = *ret_c * 16 + digit;
                if (*ret_c > 0x10ffff)
                        return false;
        }
        return n_digits > 0;
}

/* Reads an escaped character after its backslash. false: malformed, and p->r is set. */
static bool take_escape(struct parser *p, uint32_t *ret_c) {
        static const char names[] = "afnrtv";
        static const char values[] = "\a\f\n\r\t\v";
        const char *start = p->at - 1;
        char c;

        if (p->at == p->end)
                return refuse_pattern(p, "trailing backslash at end of expression", "", "");
        c = *p->at;
        if (c != 0 && strchr(names, c)) {
                *ret_c = (uint32_t)values[strchr(names, c) - names];
                p->at++;
                return true;
        }
        if (c == 'x') {
                p->at++;
                return take_hex(p, ret_c) ||
                       refuse_pattern(p, "invalid escape sequence", start, p->at);
        }
        /* A single digit other than 0 would be a back reference, which RE2 does not have. So \1 is
         * refused, but \0 and \12 are characters in octal. */
        if (c == '0' ||
            (c >= '1' && c <= '7' && p->at + 1 < p->end && p->at[1] >= '0' && p->at[1] <= '7')) {
                *ret_c = 0;
                for (unsigned i = 0; i < 3 && p->at < p->end && *p->at >= '0' && *p->at <= '7'; i++)
                        *ret_c = *ret_c * 8 + (uint32_t)(*p->at++ - '0');
                return true;
        }
        /* Punctuation, blanks and control characters of ASCII stand for themselves. Any other
         * character is refused. */
        if ((unsigned char)c < 0x80 && !is_alphanumeric(c)) {
                *ret_c = (unsigned char)c;
                p->at++;
                return true;
        }
        take_character(p);
        return refuse_pattern(p, "invalid escape sequence", start, p->at);
}

/* A class of Unicode after its backslash: pL, P{Greek}. false: p->r is set. */
static bool take_unicode(struct parser *p, struct hf__cel_set *set) {
        const char *start = p->at - 1;
        bool negated = *p->at == 'P';
        const char *name = ++p->at;
        const char *name_end;
        bool known = false;

        if (p->at == p->end)
                return refuse_pattern(p, "invalid character class range", start, p->end);
        if (take_text(p, "{")) {
                name++;
                name_end = memchr(name, '}', (size_t)(p->end - name));
                if (!name_end)
                        return refuse_pattern(p, "invalid character class range", start, p->end);
                p->at = name_end + 1;
        } else {
                take_character(p);
                name_end = p->at;
        }
        if (hf__cel_set_add_unicode(p->maker, set, name, (size_t)(name_end - name), negated,
                                    p->flags.fold, &known))
                return true;
        if (known)
                p->r = -ENOMEM;
        return refuse_pattern(p, "invalid character class range", start, p->at);
}

/* Whether a backslash and c name a class such as \d. */
static bool is_perl(char c) { return c != 0 && strchr("dswDSW", c); }

/* Reads [:name:] within a class. false: the text is something else, or p->r is set. A bracket
 * without a closing ":]" is a character of the class like any other. */
static bool take_posix(struct parser *p, struct hf__cel_set *set) {
        const char *start = p->at;
        const char *name = start + 2;
        const char *close;
        bool negated;
        bool known;

        if (p->no_posix || !peek_text(p, "[:"))
                return false;
        for (close = name; close + 1 < p->end && !(close[0] == ':' && close[1] == ']');)
                close++;
        p->maker->work += (size_t)(close - name) / STEP_BYTES;
        p->no_posix = close + 1 >= p->end;
        if (p->no_posix)
                return false;
        negated = *name == '^';
        name += negated ? 1 : 0;
        p->at = close + 2;
        if (hf__cel_set_add_posix(p->maker, set, name, (size_t)(close - name), negated,
                                  p->flags.fold, &known))
                return true;
        if (known)
                p->r = -ENOMEM;
        return refuse_pattern(p, "invalid character class range", start, p->at);
}

/* A character of a class. false: p->r is set. */
static bool take_class_character(struct parser *p, uint32_t *ret_c, const char *class_start) {
        if (p->at == p->end)
                return refuse_pattern(p, "missing closing ]", class_start, p->end);
        if (take_text(p, "\\"))
                return take_escape(p, ret_c);
        *ret_c = take_character(p);
        return true;
}

/* Adds one item of a class to the set: a character, a range, or a class within the class.
 * class_start: the opening bracket, for the error. False: p->r is set. */
static bool take_class_item(struct parser *p, struct hf__cel_set *set, const char *class_start) {
        const char *start = p->at;
        uint32_t first;
        uint32_t last;

        if (peek_text(p, "\\") && p->at + 1 < p->end && is_perl(p->at[1])) {
                p->at += 2;
                if (!hf__cel_set_add_perl(p->maker, set, p->at[-1], p->flags.fold))
                        p->r = -ENOMEM;
                return p->r == 0;
        }
        if (peek_text(p, "\\p") || peek_text(p, "\\P")) {
                p->at++;
                return take_unicode(p, set);
        }
        if (take_posix(p, set) || p->r != 0)
                return p->r == 0;
        if (!take_class_character(p, &first, class_start))
                return false;
        last = first;
        /* A minus before the closing bracket is a character, not a range. */
        if (p->end - p->at >= 2 && p->at[0] == '-' && p->at[1] != ']') {
                p->at++;
                if (!take_class_character(p, &last, class_start))
                        return false;
        }
        if (last < first)
                return refuse_pattern(p, "invalid character class range", start, p->at);
        if (!hf__cel_set_add(p->maker, set, first, last, p->flags.fold))
                p->r = -ENOMEM;
        return p->r == 0;
}

/* Parses a class, [a-z], after its opening bracket. */
static struct hf__cel_regex_node *parse_class(struct parser *p) {
        struct hf__cel_regex_node *node = new_node(p, HF__CEL_REGEX_SET);
        const char *start = p->at - 1;
        bool negated = take_text(p, "^");
        bool first = true;

        /* A bracket directly after the opening one is a character of the class: []a]. */
        while (node && p->r == 0 && (first || !peek_text(p, "]"))) {
                first = false;
                if (p->at == p->end)
                        return refuse_pattern(p, "missing closing ]", start, p->end);
                if (!take_class_item(p, &node->set, start) || !check_work(p))
                        return NULL;
        }
        if (p->r != 0 || !take_text(p, "]"))
                return NULL;
        return finish_set(p, node, negated);
}

/* Sets or clears the flag that a letter names. false: there is no such flag. */
static bool set_flag(struct flags *flags, uint32_t letter, bool on) {
        switch (letter) {
        case 'i': flags->fold = on; return true;
        case 'm': flags->multi_line = on; return true;
        case 's': flags->dot_all = on; return true;
        case 'U': flags->lazy = on; return true;
        default: return false;
        }
}

/* Reads the flags of a group after "(?", up to the colon or the parenthesis that ends them. With a
 * colon they open a group and last to its end; otherwise they last to the end of the group that
 * encloses them. A minus clears the flags after it, and one must follow. RE2 has no look-around,
 * because it could not be matched in linear time. false: p->r is set. */
static bool parse_flags(struct parser *p, struct flags *flags) {
        const char *start = p->at - 2;
        bool on = true;
        bool dangling = false; /* the last character is the minus */

        while (p->at < p->end) {
                uint32_t c = take_character(p);

                if ((c == ':' || c == ')') && !dangling) {
                        p->at--;
                        return true;
                }
                if (c == '-' && on)
                        on = false;
                else if (!set_flag(flags, c, on))
                        break;
                dangling = c == '-';
        }
        return refuse_pattern(p, "invalid or unsupported Perl syntax", start, p->at);
}

/* Reads the name of a group, (?P<name>...) or (?<name>...), after the question mark. It is checked
 * and forgotten: no function of CEL returns the text that a group has matched. False: there is no
 * name, or p->r is set. */
static bool skip_group_name(struct parser *p) {
        const char *start = p->at - 2;
        const char *name;
        const char *close;

        /* If the text ends at the "<", Go takes it for flags. */
        if (p->end - p->at < (peek_text(p, "P") ? 3 : 2) ||
            (!take_text(p, "P<") && !take_text(p, "<")))
                return false;
        name = p->at;
        close = memchr(name, '>', (size_t)(p->end - name));
        if (!close)
                return refuse_pattern(p, "invalid named capture", start, p->end);
        for (p->at = close + 1; name < close && (is_alphanumeric(*name) || *name == '_');)
                name++;
        return (name == close && close[-1] != '<') ||
               refuse_pattern(p, "invalid named capture", start, close + 1);
}

/* Parses a group after its opening parenthesis. Flags without a group, "(?i)", change those of the
 * group that encloses them, so p->flags is restored at the end of that group only. They match
 * nothing, and the result is NULL without an error. */
static struct hf__cel_regex_node *parse_group(struct parser *p) {
        struct flags before = p->flags;
        struct flags flags = p->flags;
        struct hf__cel_regex_node *node;

        if (take_text(p, "?") && !skip_group_name(p)) {
                if (p->r != 0)
                        return NULL;
                if (!parse_flags(p, &flags))
                        return NULL;
                p->flags = flags;
                if (take_text(p, ")"))
                        return NULL;
                p->at++; /* the colon, at which parse_flags has stopped otherwise */
        }
        if (p->depth >= DEPTH_MAX)
                return refuse_by_limit(p, "expression nests too deeply");
        p->depth++;
        node = parse_choice(p);
        assert(p->depth > 0);
        p->depth--;
        p->flags = before;
        if (node && !take_text(p, ")"))
                return refuse_pattern(p, "missing closing )", p->start, p->end);
        return node;
}

/* Parses what follows a backslash outside of a class. */
static struct hf__cel_regex_node *parse_escape(struct parser *p) {
        struct hf__cel_regex_node *node;
        uint32_t c;

        if (take_text(p, "A"))
                return new_assertion(p, HF__CEL_BEGIN_TEXT);
        if (take_text(p, "z"))
                return new_assertion(p, HF__CEL_END_TEXT);
        if (take_text(p, "b"))
                return new_assertion(p, HF__CEL_WORD_EDGE);
        if (take_text(p, "B"))
                return new_assertion(p, HF__CEL_NO_WORD_EDGE);
        if (peek_text(p, "p") || peek_text(p, "P")) {
                node = new_node(p, HF__CEL_REGEX_SET);
                return node && take_unicode(p, &node->set) ? finish_set(p, node, false) : NULL;
        }
        if (p->at < p->end && is_perl(*p->at)) {
                node = new_node(p, HF__CEL_REGEX_SET);
                if (node && !hf__cel_set_add_perl(p->maker, &node->set, *p->at++, p->flags.fold))
                        p->r = -ENOMEM;
                return finish_set(p, node, false);
        }
        return take_escape(p, &c) ? new_character(p, c) : NULL;
}

/* A dot matches all characters except a newline; with the flag s it matches all of them. It is the
 * complement of a set. */
static struct hf__cel_regex_node *parse_dot(struct parser *p) {
        struct hf__cel_regex_node *node = new_node(p, HF__CEL_REGEX_SET);

        if (node && !p->flags.dot_all && !hf__cel_set_add(p->maker, &node->set, '\n', '\n', false))
                p->r = -ENOMEM;
        return finish_set(p, node, true);
}

/* Parses what a repetition can follow. NULL without an error: flags, which are no part of what the
 * pattern matches. */
static struct hf__cel_regex_node *parse_atom(struct parser *p) {
        if (take_text(p, "("))
                return parse_group(p);
        if (take_text(p, "["))
                return parse_class(p);
        if (take_text(p, "\\"))
                return parse_escape(p);
        if (take_text(p, "."))
                return parse_dot(p);
        if (take_text(p, "^"))
                return new_assertion(p,
                                     p->flags.multi_line ? HF__CEL_BEGIN_LINE : HF__CEL_BEGIN_TEXT);
        if (take_text(p, "$"))
                return new_assertion(p, p->flags.multi_line ? HF__CEL_END_LINE : HF__CEL_END_TEXT);
        return new_character(p, take_character(p));
}

/* Reads digits. False: there are none, or there is a zero before others. A number above
 * HF__CEL_REPEAT_MAX is not exact, but stays above it. */
static bool take_count(struct parser *p, uint32_t *ret_count) {
        const char *start = p->at;

        *ret_count = 0;
        for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
                if (*ret_count <= HF__CEL_REPEAT_MAX)
                        *ret_count = *ret_count * 10 + (uint32_t)(*p->at - '0');
        return p->at == start + 1 || (p->at > start && *start != '0');
}

/* Reads "{2}", "{2,}" or "{2,3}". Any other text is not a repetition, and is not consumed: in RE2
 * the characters of "x{", "x{,2}" and "x{02}" stand for themselves. */
static bool take_braces(struct parser *p, uint32_t *ret_min, uint32_t *ret_max) {
        const char *start = p->at;

        if (take_text(p, "{") && take_count(p, ret_min)) {
                *ret_max = *ret_min;
                if (!take_text(p, ",")) {
                        if (take_text(p, "}"))
                                return true;
                } else if (take_text(p, "}")) {
                        *ret_max = HF__CEL_NO_MAX;
                        return true;
                } else if (take_count(p, ret_max) && take_text(p, "}")) {
                        return true;
                }
        }
        p->at = start;
        return false;
}

static bool take_repetition(struct parser *p, uint32_t *ret_min, uint32_t *ret_max) {
        *ret_min = 0;
        *ret_max = HF__CEL_NO_MAX;
        if (take_text(p, "*"))
                return true;
        if (take_text(p, "+")) {
                *ret_min = 1;
                return true;
        }
        if (take_text(p, "?")) {
                *ret_max = 1;
                return true;
        }
        return take_braces(p, ret_min, ret_max);
}

/* A sequence while it is parsed. */
struct sequence {
        struct hf__cel_regex_node **last; /* *last is the last child; NULL = no child yet */
        const char *repeated;             /* the repetition operator directly before, or NULL */
        unsigned rounds;                  /* repetitions of the last child */
};

/* node NULL: an error, or nothing to append. */
static void append_child(struct sequence *sequence, struct hf__cel_regex_node *node) {
        if (node) {
                if (*sequence->last)
                        sequence->last = &(*sequence->last)->next;
                *sequence->last = node;
                sequence->rounds = 0;
        }
        sequence->repeated = NULL;
}

/* Repetitions of repetitions multiply. x{0} leaves x out, so the copies in x do not count: the
 * result is 1, which multiplies nothing. */
static uint32_t count_copies(const struct hf__cel_regex_node *child, uint32_t min, uint32_t max) {
        uint32_t rounds = max == HF__CEL_NO_MAX ? min : max;

        if (max == 0)
                return 1;
        return child->copies * (rounds > 0 ? rounds : 1);
}

/* Replaces the last child with its repetition, whose operator begins at `start` and was read. The
 * child need not stand directly before: flags and an empty \Q\E can come between. The messages and
 * the order of the checks are Go's. */
static void repeat_child(struct parser *p, struct sequence *sequence, const char *start,
                         uint32_t min, uint32_t max) {
        struct hf__cel_regex_node *child = *sequence->last;
        struct hf__cel_regex_node *repeat = new_node(p, HF__CEL_REGEX_REPEAT);
        uint32_t copies;

        if (min > HF__CEL_REPEAT_MAX ||
            (max != HF__CEL_NO_MAX && (max > HF__CEL_REPEAT_MAX || max < min)))
                refuse_pattern(p, "invalid repeat count", start, p->at);
        if (!repeat || p->r != 0)
                return;
        /* The flag U swaps the meaning of the question mark. */
        repeat->lazy = take_text(p, "?") != p->flags.lazy;
        if (sequence->repeated)
                refuse_pattern(p, "invalid nested repetition operator", sequence->repeated, p->at);
        if (!child) {
                refuse_pattern(p, "missing argument to repetition operator", start, p->at);
                return;
        }
        if (++sequence->rounds > ROUNDS_MAX)
                refuse_by_limit(p, "expression nests too deeply");
        copies = count_copies(child, min, max);
        if (copies > HF__CEL_REPEAT_MAX)
                refuse_pattern(p, "invalid repeat count", start, p->at);
        repeat->child = child;
        repeat->min = min;
        repeat->max = max;
        repeat->copies = (uint16_t)copies;
        repeat->nullable = min == 0 || child->nullable;
        *sequence->last = repeat;
        sequence->repeated = start;
}

/* Parses \Q...\E after its first two characters, and appends its characters to the sequence.
 * Returns nothing; an error is in p->r. */
static void parse_quoted(struct parser *p, struct sequence *sequence) {
        sequence->repeated = NULL;
        while (has_more(p) && !take_text(p, "\\E"))
                append_child(sequence, new_character(p, take_character(p)));
}

static struct hf__cel_regex_node *parse_sequence(struct parser *p) {
        struct hf__cel_regex_node *node = new_node(p, HF__CEL_REGEX_SEQUENCE);
        struct sequence sequence = {.last = node ? &node->child : NULL};
        uint32_t min;
        uint32_t max;

        while (node && has_more(p) && !peek_text(p, "|") && !peek_text(p, ")")) {
                const char *start = p->at;

                if (take_text(p, "\\Q"))
                        parse_quoted(p, &sequence);
                else if (take_repetition(p, &min, &max))
                        repeat_child(p, &sequence, start, min, max);
                else
                        append_child(&sequence, parse_atom(p));
        }
        if (!node || p->r != 0)
                return NULL;
        node->nullable = true;
        for (const struct hf__cel_regex_node *child = node->child; child; child = child->next) {
                node->nullable = node->nullable && child->nullable;
                node->copies = child->copies > node->copies ? child->copies : node->copies;
        }
        return node;
}

static struct hf__cel_regex_node *parse_choice(struct parser *p) {
        struct hf__cel_regex_node *node = new_node(p, HF__CEL_REGEX_CHOICE);
        struct hf__cel_regex_node **place = node ? &node->child : NULL;

        while (node && p->r == 0) {
                struct hf__cel_regex_node *child = parse_sequence(p);

                if (!child)
                        return NULL;
                *place = child;
                place = &child->next;
                node->nullable = node->nullable || child->nullable;
                node->copies = child->copies > node->copies ? child->copies : node->copies;
                if (!take_text(p, "|"))
                        break;
        }
        return p->r == 0 ? node : NULL;
}

int hf__cel_regex_parse(struct hf__cel_set_maker *maker, const char *text, size_t n,
                        struct hf__cel_regex_node **ret_root, char *reterr_message,
                        size_t max_message) {
        struct parser p = {.maker = maker,
                           .start = text,
                           .at = text,
                           .end = text + n,
                           .message = reterr_message,
                           .max_message = max_message};

        *ret_root = parse_choice(&p);
        if (p.r == 0 && p.at < p.end)
                refuse_pattern(&p, "unexpected )", text, p.end);
        assert(p.r != 0 || *ret_root);
        return p.r;
}
