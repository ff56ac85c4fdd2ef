/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Threads of the library: joined, named, with all signals blocked and the host's stack size. None
 * is ever detached.
 */
#include <pthread.h>

#include <holdfast/host.h>

/* name: up to 15 characters ("hf-elector"). 0 or -errno. The caller joins. */
int hf__thread_start(const struct hf_host *host, const char *name, void *(*fn)(void *ctx),
                     void *ctx, pthread_t *ret_thread);
/* A pthread mutex that is error-checking in debug builds. 0 or -errno. */
int hf__mutex_init(pthread_mutex_t *mutex);
