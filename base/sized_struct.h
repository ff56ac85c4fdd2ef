/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Structs that can grow in later releases. Each begins with `size_t size`, which the caller sets to
 * the sizeof of the struct that it was compiled with; new members are only added at the end.
 *
 * If the caller is older than the library, members that the caller does not know count as 0, which
 * is their default. If the caller is newer, members that the library does not know must be 0.
 * Otherwise the library would silently ignore a setting. Nothing beyond the caller's size is read
 * or written. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/error.h>

/* A larger size is not the sizeof of any release: the caller did not set it. */
#define HF__SIZED_MAX 4096

/* The properties of a public struct in this version of the library. */
struct hf__sized {
        const char *name; /* "struct hf_hook" */
        size_t n;         /* our sizeof */
        size_t min;       /* up to and including the last member that every caller has */
};
#define HF__SIZED(type, last)                                                                      \
        { #type, sizeof(type), offsetof(type, last) + sizeof(((type *)0)->last) }

/* Whether the struct of a caller, which may be older than the library, has the member. For structs
 * that are borrowed, and so are not copied. */
#define HF__SIZED_HAS(at, member)                                                                  \
        ((at)->size >= (size_t)((const char *)(&(at)->member + 1) - (const char *)(at)))

/* Checks a borrowed struct. 0, or -EINVAL with a message that names the struct and the mistake: it
 * is NULL, its size is too small (perhaps the caller forgot to set it) or too large, or a member
 * that this library does not know is not 0. */
int hf__sized_check(const struct hf__sized *type, const void *from,
                    struct hf_status *reterr_status);
/* Checks and copies a struct. *to is our whole struct; its size is ours. */
int hf__sized_copy(const struct hf__sized *type, void *to, const void *from,
                   struct hf_status *reterr_status);
/* The same for element i of an array. All elements have the size of the first, so that this is the
 * distance between two. The elements before i must have been copied, because that has checked the
 * size of the first. */
int hf__sized_copy_at(const struct hf__sized *type, void *to, const void *first, size_t i,
                      struct hf_status *reterr_status);
/* Fills the caller's struct, whose size the caller has set, from ours: as much as it has room for,
 * then zeros. Its size stays. 0, or -EINVAL: it is NULL, or its size is too small or too large. Its
 * other members are not checked. */
int hf__sized_fill(const struct hf__sized *type, void *to, const void *from);
