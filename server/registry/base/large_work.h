/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The use of the registry's pool of threads for large writes, and for other work that takes many
 * milliseconds: an OpenAPI document, a signature. Thread: any. Nothing here blocks.
 */
#include "server/registry/base/registry_state.h"
#include "server/resources/response.h"

struct hfd_work_task;

/*
 * Bytes. The pool decodes a write's body if it is larger than this. A write is also large if its
 * body, the stored object and the new one together exceed this. A patch of this size is estimated
 * to take 2 ms or less.
 */
#define HFD_LARGE_BODY ((size_t)64 << 10)
/* While the pool has this many queued or running tasks (lists and watches included), new large
 * writes, TokenRequests and requests for an OpenAPI document that it must make get 429. A write
 * that has begun, and a delete of a deletecollection, are still accepted. Threads that submit at
 * the same time may exceed the number. Each task may hold a body of 3 MiB. */
#define HFD_LARGE_WORK_MAX 256

/*
 * Submits a task, which is idle, as one with a long step. bounded: refuse it if the pool has
 * HFD_LARGE_WORK_MAX tasks. Returns 0, HF_E_TOO_MANY, or HF_E_CLOSED: the pool is stopping. On
 * failure task->step is not called.
 */
int hfd_large_work_submit(struct hfd_registry *registry, struct hfd_work_task *task, bool bounded);
/* Fills the response to a request that was refused. r: what hfd_large_work_submit returned, -ENOMEM
 * if the task could not be allocated, or HF_E_CANCELED. */
void hfd_large_work_refuse(int r, struct hfd_response *response);
