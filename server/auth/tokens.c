/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token file as a hash table. The text of the file is split into strings in place, so that a
 * table has only four blocks of memory: its struct, the text, the entries and the buckets.
 *
 * Invariants:
 * - The duration of a look-up must not help to guess a token. So the hash is seeded with a secret,
 *   and a comparison of two tokens of the same length takes the same time wherever they differ.
 * - The text is overwritten before its memory is freed.
 * - The lengths of names and groups are checked when a line is read, so that they always fit into a
 *   struct hfd_user. A uid may be longer, and is then left out (hfd_tokens_find).
 */
#include "server/auth/tokens.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/auth/files.h"
#include "server/auth/user.h"

/* One line of the file. All strings are parts of the table's text. */
struct entry {
        char *token, *user, *uid;
        char *groups; /* n_groups consecutive strings */
        size_t n_groups;
        struct entry *next; /* the next entry in the same bucket */
};

struct hfd_tokens {
        uint64_t seed;
        char *text;            /* owned; the file, split into strings in place */
        size_t n_text;         /* its length, with the NULs that end the strings */
        struct entry *entries; /* owned */
        size_t n_entries;
        struct entry **buckets; /* owned array of n_buckets, a power of two */
        size_t n_buckets;
};

/* The position in the file, for messages. */
struct place {
        const char *path;
        size_t line;
        struct hf_status *reterr_status;
};

static int fail_line(const struct place *place, const char *what) {
        return hf_fail(place->reterr_status, HF_E_INVALID, "token file %s, line %zu: %s",
                       place->path, place->line, what);
}

/* FNV-1a, seeded with a secret, so that clients cannot know the bucket of a token. The low bits
 * choose the bucket, so the high ones are mixed into them at the end. */
static uint64_t hash_token(uint64_t seed, const char *token) {
        uint64_t hash = UINT64_C(14695981039346656037) ^ seed;
        for (; *token; token++)
                hash = (hash ^ (unsigned char)*token) * UINT64_C(1099511628211);
        return hash ^ (hash >> 32);
}

/* The duration depends on the lengths only, not on the position of the first difference. */
static bool equal_in_constant_time(const char *a, const char *b) {
        size_t n = strlen(a);
        unsigned char difference = 0;
        if (strlen(b) != n)
                return false;
        for (size_t i = 0; i < n; i++)
                difference |= (unsigned char)(a[i] ^ b[i]);
        return difference == 0;
}

/*
 * Returns the CSV column that begins at *at, as a string in place without its quotes ("" within
 * quotes is one quote). *at moves past the comma, or becomes NULL at the end of the line. Returns
 * NULL if a quote is not closed or is inside an unquoted column, or if text follows a quoted one.
 */
static char *split_column(char **at) {
        char *in = *at, *start = in, *out = in;
        if (*in != '"') {
                char *comma = strchr(in, ',');
                *at = comma ? comma + 1 : NULL;
                if (comma)
                        *comma = '\0';
                return strchr(start, '"') ? NULL : start;
        }
        for (in++;; in++) {
                if (*in == '\0')
                        return NULL;
                if (*in == '"' && *++in != '"')
                        break;
                *out++ = *in;
        }
        if (*in != ',' && *in != '\0')
                return NULL;
        *at = *in == ',' ? in + 1 : NULL;
        *out = '\0';
        return start;
}

/* Splits "a,b" in place into consecutive strings, without blanks around them or empty groups. */
static int split_groups(const struct place *place, char *column, struct entry *entry) {
        char *out = column, *save = NULL;
        entry->groups = column;
        for (char *group = strtok_r(column, ",", &save); group;
             group = strtok_r(NULL, ",", &save)) {
                group += strspn(group, " \t");
                size_t n = strlen(group);
                while (n > 0 && (group[n - 1] == ' ' || group[n - 1] == '\t'))
                        n--;
                if (n == 0)
                        continue;
                if (n >= sizeof((struct hfd_user *)NULL)->groups[0])
                        return fail_line(place, "a group is longer than 127 bytes; shorten it");
                /* Leave room for system:authenticated, which hfd_auth_authenticate_token adds. */
                if (++entry->n_groups > HFD_MAX_GROUPS - 1)
                        return fail_line(place, "there are more than 15 groups; remove some");
                memmove(out, group, n);
                out[n] = '\0';
                out += n + 1;
        }
        return 0;
}

static int parse_line(const struct place *place, char *line, struct entry *entry) {
        char *columns[4] = {0};
        char *at = line;
        for (size_t i = 0; i < 4 && at; i++) {
                columns[i] = split_column(&at);
                if (!columns[i])
                        return fail_line(place,
                                         "a quote is not closed or is inside an unquoted column; "
                                         "quote whole columns");
        }
        if (!columns[2])
                return fail_line(place,
                                 "there must be at least 3 columns: token, user name, user uid");
        if (columns[0][0] == '\0')
                return fail_line(place,
                                 "the token is empty; the columns are token, user name, user uid");
        if (columns[1][0] == '\0')
                return fail_line(place, "the user name is empty; the columns are token, user "
                                        "name, user uid");
        if (strlen(columns[1]) >= sizeof((struct hfd_user *)NULL)->name)
                return fail_line(place, "the user name is longer than 351 bytes; shorten it");
        *entry = (struct entry){.token = columns[0], .user = columns[1], .uid = columns[2]};
        return columns[3] ? split_groups(place, columns[3], entry) : 0;
}

static int parse_lines(struct hfd_tokens *tokens, struct place *place) {
        char *next = tokens->text;
        while (next && *next) {
                char *line = next;
                size_t n = strcspn(line, "\n");
                next = line[n] ? line + n + 1 : NULL;
                line[n] = '\0';
                if (n > 0 && line[n - 1] == '\r')
                        line[n - 1] = '\0';
                place->line++;
                if (line[strspn(line, " \t")] == '\0')
                        continue;
                int r = parse_line(place, line, &tokens->entries[tokens->n_entries]);
                if (r != 0)
                        return r;
                tokens->n_entries++;
        }
        return 0;
}

static size_t count_lines(const char *text) {
        size_t n = 1; /* the last line may have no newline */
        for (; *text; text++)
                n += *text == '\n';
        return n;
}

/* Builds the hash table. Later lines are inserted at the front of their bucket, so that a look-up
 * finds the last line of a token. */
static int build_index(struct hfd_tokens *tokens) {
        tokens->n_buckets = 16;
        while (tokens->n_buckets < tokens->n_entries)
                tokens->n_buckets *= 2;
        tokens->buckets = calloc(tokens->n_buckets, sizeof *tokens->buckets);
        if (!tokens->buckets)
                return -ENOMEM;
        for (size_t i = 0; i < tokens->n_entries; i++) {
                struct entry *entry = &tokens->entries[i];
                struct entry **bucket = &tokens->buckets[hash_token(tokens->seed, entry->token) &
                                                         (tokens->n_buckets - 1)];
                entry->next = *bucket;
                *bucket = entry;
        }
        return 0;
}

int hfd_tokens_load(const char *path, uint64_t seed, struct hfd_tokens **ret_tokens,
                    struct hf_status *reterr_status) {
        struct place place = {.path = path, .reterr_status = reterr_status};
        struct hfd_tokens *tokens = calloc(1, sizeof *tokens);
        if (!tokens)
                return hf_fail(reterr_status, -ENOMEM, "token file %s: out of memory", path);
        tokens->seed = seed;
        int r = hfd_read_file(path, &tokens->text, reterr_status);
        if (r == 0) {
                tokens->n_text = strlen(tokens->text);
                tokens->entries = calloc(count_lines(tokens->text), sizeof *tokens->entries);
                r = tokens->entries ? parse_lines(tokens, &place) : -ENOMEM;
        }
        if (r == 0)
                r = build_index(tokens);
        if (r == -ENOMEM)
                (void)hf_fail(reterr_status, r, "token file %s: out of memory", path);
        if (r != 0) {
                hfd_tokens_free(tokens);
                return r;
        }
        *ret_tokens = tokens;
        return 0;
}

struct hfd_tokens *hfd_tokens_free(struct hfd_tokens *tokens) {
        if (!tokens)
                return NULL;
        if (tokens->text)
                explicit_bzero(tokens->text, tokens->n_text);
        free(tokens->text);
        free(tokens->entries);
        free(tokens->buckets);
        free(tokens);
        return NULL;
}

bool hfd_tokens_find(const struct hfd_tokens *tokens, const char *token,
                     struct hfd_user *ret_user) {
        assert(tokens->n_buckets > 0 && (tokens->n_buckets & (tokens->n_buckets - 1)) == 0);
        const struct entry *entry =
                tokens->buckets[hash_token(tokens->seed, token) & (tokens->n_buckets - 1)];
        while (entry && !equal_in_constant_time(entry->token, token))
                entry = entry->next;
        if (!entry)
                return false;
        /* Lengths were checked when the line was read. */
        assert(strlen(entry->user) < sizeof ret_user->name && entry->n_groups < HFD_MAX_GROUPS);
        memcpy(ret_user->name, entry->user, strlen(entry->user) + 1);
        /* A longer uid is left out: the users of this file are identified by their names. */
        if (entry->uid && strlen(entry->uid) < sizeof ret_user->uid)
                memcpy(ret_user->uid, entry->uid, strlen(entry->uid) + 1);
        const char *group = entry->groups;
        for (ret_user->n_groups = 0; ret_user->n_groups < entry->n_groups; ret_user->n_groups++) {
                size_t n = strlen(group) + 1;
                memcpy(ret_user->groups[ret_user->n_groups], group, n);
                group += n;
        }
        return true;
}
