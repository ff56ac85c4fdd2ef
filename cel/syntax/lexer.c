/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides an expression into tokens.
 *
 * Invariants: each round consumes at least one byte. Each token begins with an ASCII character, so
 * there are at most as many tokens as characters.
 *
 * A text that begins like a token, but is malformed, is reported up to and including the character
 * that does not fit, and skipped, as the scanner of Kubernetes does it.
 */
#include "cel/syntax/lexer.h"

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cel/values/issues.h"

/* The most searches for three closing quotes that may find none. Each may read to the end of the
 * text, so without a limit their time would be quadratic. The limit refuses no valid expression:
 * without closing quotes the opening ones are an empty string followed directly by a quote, which
 * is malformed. */
#define SEARCHES_MAX 16

struct lexer {
        const char *text;
        size_t n;
        struct hf__cel_issues *issues;
        unsigned failed_searches;
};

static char char_at(const struct lexer *l, size_t i) { return i < l->n ? l->text[i] : 0; }

static bool is_letter(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Skips white space and comments. */
static size_t skip_space(const struct lexer *l, size_t i) {
        for (;;) {
                char c = char_at(l, i);

                if (i < l->n && (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f')) {
                        i++;
                } else if (c == '/' && char_at(l, i + 1) == '/') {
                        while (i < l->n && l->text[i] != '\n')
                                i++;
                } else {
                        return i;
                }
        }
}

/* The length of an escape sequence that begins at the backslash. 0: it is malformed, and *ret_bad
 * is the byte that does not fit, or the end of the text. An octal escape has three digits and
 * begins with 0 to 3, so it fits into a byte. */
static size_t escape_length(const struct lexer *l, size_t i, size_t *ret_bad) {
        char c = char_at(l, i + 1);
        size_t digits = 0;
        size_t n;

        if (c != 0 && strchr("abfnrtv\"'\\?`", c))
                return 2;
        if (c == 'x' || c == 'X')
                digits = 2;
        if (c == 'u')
                digits = 4;
        if (c == 'U')
                digits = 8;
        if (c >= '0' && c <= '3') {
                for (n = 2; n < 4 && char_at(l, i + n) >= '0' && char_at(l, i + n) <= '7';)
                        n++;
                *ret_bad = i + n;
                return n == 4 ? 4 : 0;
        }
        for (n = 2; n < 2 + digits && hf__hex_digit(char_at(l, i + n)) >= 0;)
                n++;
        *ret_bad = digits == 0 ? i + 1 : i + n;
        return digits > 0 && n == 2 + digits ? n : 0;
}

/* The end of a string literal whose first quote is at i. The first two of three quotes are an empty
 * string if the closing three are missing, or an escape before them is malformed. 0: there is no
 * end, and *ret_bad is the byte that does not fit, or the end of the text. */
static size_t string_end(struct lexer *l, size_t i, bool raw, size_t *ret_bad) {
        char quote = l->text[i];
        bool triple = char_at(l, i + 1) == quote && char_at(l, i + 2) == quote;
        size_t k = i + (triple ? 3 : 1);

        /* No further search: the expression is malformed anyway. */
        if (triple && l->failed_searches == SEARCHES_MAX)
                return i + 2;
        while (k < l->n) {
                char c = l->text[k];

                if (c == quote &&
                    (!triple || (char_at(l, k + 1) == quote && char_at(l, k + 2) == quote)))
                        return k + (triple ? 3 : 1);
                if (!triple && (c == '\n' || c == '\r'))
                        break;
                if (c == '\\' && !raw) {
                        size_t n = escape_length(l, k, ret_bad);

                        if (n == 0 && !triple)
                                return 0;
                        if (n == 0)
                                break;
                        k += n;
                } else {
                        k++;
                }
        }
        *ret_bad = k;
        l->failed_searches += triple ? 1 : 0;
        return triple ? i + 2 : 0;
}

static size_t digits_end(const struct lexer *l, size_t i) {
        while (hf__is_digit(char_at(l, i)))
                i++;
        return i;
}

static size_t exponent_end(const struct lexer *l, size_t i) {
        size_t k = i + 1;

        if (char_at(l, i) != 'e' && char_at(l, i) != 'E')
                return i;
        if (char_at(l, k) == '+' || char_at(l, k) == '-')
                k++;
        /* Without a digit the letter is no exponent, but begins the next token. */
        return hf__is_digit(char_at(l, k)) ? digits_end(l, k) : i;
}

/* A dot belongs to a number only if a digit follows it. Otherwise it selects a member: 1.size is no
 * number. */
static size_t number_end(const struct lexer *l, size_t i, uint8_t *ret_kind) {
        size_t end = digits_end(l, i);
        size_t fraction;

        *ret_kind = HF__CEL_TOKEN_INT;
        if (char_at(l, i) == '0' && char_at(l, i + 1) == 'x' &&
            hf__hex_digit(char_at(l, i + 2)) >= 0) {
                end = i + 2;
                while (hf__hex_digit(char_at(l, end)) >= 0)
                        end++;
        } else {
                fraction = end;
                if (char_at(l, end) == '.' && hf__is_digit(char_at(l, end + 1)))
                        fraction = digits_end(l, end + 1);
                fraction = exponent_end(l, fraction);
                if (fraction > end) {
                        *ret_kind = HF__CEL_TOKEN_FLOAT;
                        return fraction;
                }
        }
        if (char_at(l, end) == 'u' || char_at(l, end) == 'U') {
                *ret_kind = HF__CEL_TOKEN_UINT;
                end++;
        }
        return end;
}

/* The end of a string with its prefix. 0: the text is not a string, or is a malformed one. */
static size_t literal_end(struct lexer *l, size_t i, uint8_t *ret_kind, size_t *ret_bad) {
        bool bytes = char_at(l, i) == 'b' || char_at(l, i) == 'B';
        size_t k = i + (bytes ? 1 : 0);
        bool raw = char_at(l, k) == 'r' || char_at(l, k) == 'R';

        k += raw ? 1 : 0;
        if (char_at(l, k) != '"' && char_at(l, k) != '\'')
                return 0;
        *ret_kind = bytes ? HF__CEL_TOKEN_BYTES : HF__CEL_TOKEN_STRING;
        return string_end(l, k, raw, ret_bad);
}

/* Only these four words are tokens of the grammar. Other reserved words are names, which the parser
 * refuses by their name. */
static bool is_word(const char *text, size_t n) {
        static const char *const words[] = {"in", "true", "false", "null"};

        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
                if (strlen(words[i]) == n && memcmp(words[i], text, n) == 0)
                        return true;
        return false;
}

static size_t name_end(const struct lexer *l, size_t i, uint8_t *ret_kind) {
        size_t end = i;

        while (is_letter(char_at(l, end)) || hf__is_digit(char_at(l, end)))
                end++;
        *ret_kind = is_word(l->text + i, end - i) ? HF__CEL_TOKEN_WORD : HF__CEL_TOKEN_NAME;
        return end;
}

/* cel-go's quoted names: they select fields whose names are no identifiers, such as a.`x-y`. */
static size_t quoted_name_end(const struct lexer *l, size_t i, size_t *ret_bad) {
        size_t k = i + 1;

        while (is_letter(char_at(l, k)) || hf__is_digit(char_at(l, k)) ||
               (char_at(l, k) != 0 && strchr(".-/ ", char_at(l, k))))
                k++;
        *ret_bad = k;
        return char_at(l, k) == '`' && k > i + 1 ? k + 1 : 0;
}

static size_t sign_end(const struct lexer *l, size_t i, size_t *ret_bad) {
        char c = char_at(l, i);
        char next = char_at(l, i + 1);

        if ((c == '<' || c == '>' || c == '!') && next == '=')
                return i + 2;
        if (c == '=' || c == '&' || c == '|') {
                *ret_bad = i + 1;
                /* CEL has no bit operators and no assignment, so a token that begins with one of
                 * these signs is this sign twice. */
                return next == c ? i + 2 : 0;
        }
        return c != 0 && strchr("<>[]{}().,-!?:+*/%", c) ? i + 1 : 0;
}

/* The end of the token at i. 0: there is none. */
static size_t token_end(struct lexer *l, size_t i, uint8_t *ret_kind, size_t *ret_bad) {
        char c = char_at(l, i);
        size_t end;

        *ret_bad = i;
        if (hf__is_digit(c) || (c == '.' && hf__is_digit(char_at(l, i + 1)))) {
                return number_end(l, i, ret_kind);
        }
        if (c == '`') {
                *ret_kind = HF__CEL_TOKEN_QUOTED_NAME;
                return quoted_name_end(l, i, ret_bad);
        }
        end = literal_end(l, i, ret_kind, ret_bad);
        if (end > 0)
                return end;
        if (is_letter(c))
                return name_end(l, i, ret_kind);
        *ret_kind = HF__CEL_TOKEN_SIGN;
        return c == '"' || c == '\'' ? 0 : sign_end(l, i, ret_bad);
}

/* Reports a text that is not a token, and returns where to continue. */
static size_t refuse_character(const struct lexer *l, size_t i, size_t bad) {
        size_t end = bad;

        if (bad < l->n) {
                size_t length = hf__utf8_length(l->text + bad, l->n - bad);

                end = bad + (length > 0 ? length : 1);
        }
        hf__cel_issues_add(l->issues, (uint32_t)i,
                           "Syntax error: token recognition error at: '%.*s'",
                           end - i > 200 ? 200 : (int)(end - i), l->text + i);
        return end;
}

const struct hf__cel_token *hf__cel_lex(struct hf__arena *arena, struct hf__cel_issues *issues) {
        struct lexer l = {.text = issues->text, .n = issues->n_text, .issues = issues};
        /* One allocation, with room for the most tokens that can occur and for the END, where the
         * parser stops. */
        size_t max = hf__utf8_count(l.text, l.n) + 1;
        struct hf__cel_token *tokens = hf__arena_alloc(arena, max * sizeof *tokens);
        size_t n = 0;
        size_t i = 0;

        if (!tokens)
                return NULL;
        for (;;) {
                uint8_t kind = HF__CEL_TOKEN_END;
                size_t bad;
                size_t end;

                i = skip_space(&l, i);
                if (i == l.n)
                        break;
                end = token_end(&l, i, &kind, &bad);
                if (end > 0)
                        tokens[n++] = (struct hf__cel_token){.kind = kind,
                                                             .at = (uint32_t)i,
                                                             .n = (uint32_t)(end - i)};
                else
                        end = refuse_character(&l, i, bad);
                i = end;
        }
        tokens[n] = (struct hf__cel_token){.kind = HF__CEL_TOKEN_END, .at = (uint32_t)l.n};
        return tokens;
}
