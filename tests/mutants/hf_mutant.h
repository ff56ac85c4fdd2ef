/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before each source of a schema: a copy of the sources that contains systematic mistakes,
 * of which HF_MUTANT chooses one by its number (0, or none: no mistake). With HF_MUTANT_TRACE, the
 * name of a file with one byte for each number, each place that is reached sets its byte.
 */
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HF_MUTANT_MAX 65536

static int hf_mutant;
static unsigned char *hf_mutant_reached;

__attribute__((constructor, unused)) static void hf_mutant_init(void) {
        const char *chosen = getenv("HF_MUTANT"), *trace = getenv("HF_MUTANT_TRACE");
        int fd;
        void *map;

        if (chosen)
                hf_mutant = atoi(chosen);
        if (!trace)
                return;
        fd = open(trace, O_RDWR | O_CLOEXEC);
        if (fd < 0)
                return;
        map = mmap(NULL, HF_MUTANT_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        if (map != MAP_FAILED)
                hf_mutant_reached = map;
}

__attribute__((unused)) static int hf_mutant_is(int number) {
        if (hf_mutant_reached)
                hf_mutant_reached[number] = 1;
        return hf_mutant == number;
}

#define HF_MUTANT_IS(n) __builtin_expect(hf_mutant_is(n), 0)
