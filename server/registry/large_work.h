/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The use of the registry's pool of threads for large writes. Thread: any. Nothing here blocks.
 */
#include "server/registry/registry.h"
#include "server/resources/response.h"

struct hfd_work_task;

/*
 * Bytes of a body from which on it is decoded by the pool. Together with the stored object it is
 * also the size from which on a write is large: measured, a patch of this size takes 2 ms at most.
 */
#define HFD_LARGE_BODY ((size_t)64 << 10)
/* Tasks in the pool from which on no further write is taken. Each may hold a body of 3 MiB. */
#define HFD_LARGE_WORK_MAX 256

/*
 * Submits the task of a large write. bounded: refuse it if the pool has HFD_LARGE_WORK_MAX tasks.
 * 0, HF_E_TOO_MANY, or HF_E_CLOSED: the pool stops. On failure no step follows.
 */
int hfd_large_work_submit(struct hfd_registry *registry, struct hfd_work_task *task, bool bounded);
/* Fills the response to a request that hfd_large_work_submit has refused with r (or -ENOMEM). */
void hfd_large_work_refuse(int r, struct hfd_response *response);
