/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before each source of a schema, which is a copy of the sources with all systematic
 * mistakes in it. The environment variable HF_MUTANT is the number of the mistake that the program
 * makes (0 or not set: none). HF_MUTANT_TRACE may name a file with one byte for each number: the
 * program sets the byte of each mistake whose place it reaches.
 */
#pragma once

/* Headers that declare functions are not included: a source may have static functions of the same
 * names. */
#include <sys/syscall.h>

extern char *hf_mutant_getenv(const char *name) __asm__("getenv");
extern int hf_mutant_atoi(const char *text) __asm__("atoi");
extern int hf_mutant_open(const char *path, int flags, ...) __asm__("open");
extern long hf_mutant_syscall(long number, ...) __asm__("syscall");
extern void *hf_mutant_mmap(void *at, unsigned long n, int protection, int flags, int fd,
                            long offset) __asm__("mmap");
#define HF_MUTANT_READ_WRITE 2 /* O_RDWR */
#define HF_MUTANT_PROTECTION 3 /* PROT_READ | PROT_WRITE */
#define HF_MUTANT_SHARED     1 /* MAP_SHARED */

#define HF_MUTANT_MAX 65536

static int hf_mutant;
static unsigned char *hf_mutant_reached;

__attribute__((constructor, unused)) static void hf_mutant_init(void) {
        const char *chosen = hf_mutant_getenv("HF_MUTANT");
        const char *trace = hf_mutant_getenv("HF_MUTANT_TRACE");
        int fd;
        void *map;

        if (chosen)
                hf_mutant = hf_mutant_atoi(chosen);
        if (!trace)
                return;
        fd = hf_mutant_open(trace, HF_MUTANT_READ_WRITE);
        if (fd < 0)
                return;
        map = hf_mutant_mmap((void *)0, HF_MUTANT_MAX, HF_MUTANT_PROTECTION, HF_MUTANT_SHARED, fd,
                             0);
        hf_mutant_syscall(SYS_close, (long)fd); /* a source has a static close() */
        if (map != (void *)-1)
                hf_mutant_reached = map;
}

__attribute__((unused)) static int hf_mutant_is(int number) {
        if (hf_mutant_reached)
                hf_mutant_reached[number] = 1;
        return hf_mutant == number;
}

#define HF_MUTANT_IS(n) __builtin_expect(hf_mutant_is(n), 0)
