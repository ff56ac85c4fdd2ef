/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Watches, by their lock files (holder_lock.h), the processes of this host that hold Leases for
 * which the electors of a set contend. Electors whose Leases one process holds share what is known
 * of that process.
 *
 * Thread: the elector loop's, except where noted.
 */
#include <stdbool.h>

#include <holdfast/clock.h>
#include <holdfast/error.h>

struct hf_elector;
struct hf__holder_ref; /* what an elector knows of its Lease's holder */
struct hf__holder_watch;

/* Locks the file at path for this process; errors as hf__holder_lock_new. Thread: the owner's. */
int hf__holder_watch_new(const char *path, struct hf__holder_watch **ret_watch,
                         struct hf_status *reterr_status);
/* All electors must have dropped their holders. Accepts NULL, returns NULL. Thread: the owner's. */
struct hf__holder_watch *hf__holder_watch_free(struct hf__holder_watch *watch);
/* Before the loop starts: where to wait for the ends of processes. Borrowed. */
void hf__holder_watch_set_epoll(struct hf__holder_watch *watch, int epoll_fd);
/* Describes this process; borrowed. NULL if watch is NULL. Thread: any. */
const char *hf__holder_watch_process(const struct hf__holder_watch *watch);

/*
 * Whether the process that holds the elector's Lease is certainly dead, or has freed its electors
 * (holder_lock.h). The holder is that of the record that the elector's core has observed last.
 * False if nothing is known, if the Lease has no holder or the elector itself as its holder, or if
 * the elector is not in the state HF_FOLLOWING. A call tests the process when it is first seen,
 * after its end (hf__holder_watch_on_fd), and if the last test is a second old; otherwise the
 * result is that of the last test.
 */
bool hf__holder_watch_is_dead(struct hf__holder_watch *watch, struct hf_elector *elector,
                              hf_nsec now);
/* Forgets the elector's holder. Thread: also the owner's, when the loop does not run. */
void hf__holder_watch_drop(struct hf__holder_watch *watch, struct hf_elector *elector);
/* Handles a readable descriptor. False: it belongs to no process here. True: the electors whose
 * Leases the process holds must look again. */
bool hf__holder_watch_on_fd(struct hf__holder_watch *watch, int fd);
