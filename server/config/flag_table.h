/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The table of flags, which is in flags.c, for the parser of the command line. Other folders use
 * flags.h. Immutable. Thread: any.
 */
#include <stddef.h>
#include <stdint.h>

#include "server/config/config.h"

#define HFD_FLAGS_MAX 128 /* at least the number of rows */

/* The member of a flag of the first three kinds is a string. Keep these kinds first: set_defaults
 * (flags_parse.c) takes every kind up to HFD_FLAG_DIRECTORY for a string. A FILE or DIRECTORY is
 * one path. If its member's name ends in _text, it is a list of paths, separated by commas. */
enum hfd_flag_kind {
        HFD_FLAG_TEXT,
        HFD_FLAG_FILE,
        HFD_FLAG_DIRECTORY,
        HFD_FLAG_CHOICE, /* one of several words */
        HFD_FLAG_BOOL,
        HFD_FLAG_NUMBER,
        HFD_FLAG_DURATION,
};

/* A row. All strings are static. */
struct hfd_flag {
        const char *name;
        enum hfd_flag_kind kind;
        unsigned commands;         /* the commands whose --help shows it; bit 1 << hfd_command */
        size_t offset;             /* of its member in struct hfd_config */
        const char *default_value; /* "" = hfd_config_complete derives it, or there is none */
        const char *shown_default; /* the default as --help shows it; NULL = default_value */
        int64_t min, max;          /* limits of a NUMBER, or of a DURATION in nanoseconds */
        const char *help;
        const char *choices; /* the words of a CHOICE, separated by '|' */
        char letter;         /* see struct hfd_flag_info */
        bool repeats;        /* a list, which may also be given by several flags */
};

/* Finds a flag by its name without "--". The name has n bytes and needs no NUL. NULL: there is
 * none. */
const struct hfd_flag *hfd_flag_table_find(const char *name, size_t n);
/* Finds the flag that a letter is short for. NULL: there is none. */
const struct hfd_flag *hfd_flag_table_find_letter(char letter);
/* The name that is nearest to the n bytes at name, among the flags that the command accepts.
 * Static. NULL: none is near (hint.h). */
const char *hfd_flag_table_near(const char *name, size_t n, enum hfd_command command);
/* The flag at this position of the table. NULL: the table has fewer flags. */
const struct hfd_flag *hfd_flag_table_at(size_t position);
/* The position of a flag in the table; less than HFD_FLAGS_MAX. */
size_t hfd_flag_table_position(const struct hfd_flag *flag);
/* Whether the command accepts the flag. */
bool hfd_flag_table_accepts(const struct hfd_flag *flag, enum hfd_command command);
