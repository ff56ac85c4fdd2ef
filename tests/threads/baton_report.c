/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of a failed schedule: why it failed, how to repeat it, and where each thread is.
 * addr2line, from the same package as the linker, finds the source lines of the addresses.
 */
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "baton_private.h"

extern const char __executable_start[]; /* the linker's: the beginning of the program in memory */

static void print_state(const struct baton_thread *thread) {
        const char *begin = "";

        if (thread->state == BATON_BLOCKED)
                begin = "waits for ";
        (void)fprintf(stderr, "\nthread %u, %s: %s%s", thread->number, thread->name, begin,
                      thread->state == BATON_BLOCKED ? thread->what : "can run");
        if (thread->state == BATON_BLOCKED && thread->until != HF_NSEC_NEVER)
                (void)fprintf(stderr, ", for %.6f s more",
                              (double)(thread->until - baton_now()) / (double)HF_NSEC_PER_SEC);
        (void)fprintf(stderr, "\n");
}

/* Leaves out the scheduler's own functions and those of the C library. */
static bool is_of_interest(const char *line) {
        return !strstr(line, " at baton.c:") && !strstr(line, " at wrap_") && !strstr(line, "??");
}

/* A frame has the address of the instruction after a call. The address before it belongs to the
 * line of the call. */
static void print_frames(const struct baton_thread *thread) {
        char command[2048], line[512];
        int n = snprintf(command, sizeof command, "addr2line -p -f -s -i -e /proc/%d/exe",
                         (int)getpid());

        for (int i = 0; i < thread->n_frames && n < (int)sizeof command - 32; i++)
                n += snprintf(command + n, sizeof command - (size_t)n, " 0x%lx",
                              (unsigned long)((const char *)thread->frames[i] - __executable_start -
                                              1));
        FILE *pipe = popen(command, "r");
        while (pipe && fgets(line, sizeof line, pipe))
                if (is_of_interest(line))
                        (void)fprintf(stderr, "        %s", line);
        if (pipe)
                (void)pclose(pipe);
}

void baton_report_begin(const char *reason, const char *command) {
        (void)fprintf(stderr, "FAIL: %s\nreplay: %s\n", reason, command);
        (void)fflush(NULL);
}

void baton_report_threads(struct baton_thread *const *threads, unsigned n_threads) {
        for (unsigned i = 0; i < n_threads; i++) {
                if (threads[i]->state == BATON_ENDED)
                        continue;
                print_state(threads[i]);
                print_frames(threads[i]);
        }
        (void)fflush(NULL);
        _exit(1);
}

void baton_trace(uint64_t step, hf_nsec now, const struct baton_thread *from,
                 const struct baton_thread *to) {
        const char *why = "goes on";

        if (from->state == BATON_ENDED)
                why = "ends";
        else if (from->state == BATON_BLOCKED)
                why = from->what;
        (void)printf("%6llu %12.6f s  %u %s (%s) -> %u %s\n", (unsigned long long)step,
                     (double)now / (double)HF_NSEC_PER_SEC, from->number, from->name, why,
                     to->number, to->name);
        (void)fflush(stdout);
}
