/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a simulated fleet (two_lease_fixture.h), and the store that has its two Leases. The
 * invariants are those of two_lease_fixture.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "two_lease_private.h"

/* ---- events ---- */

struct two_lease_event *two_lease_add_event(struct two_lease_fixture *f,
                                            enum two_lease_event_type type, int process,
                                            hf_nsec at) {
        assert_true(f->n_events < TWO_LEASE_MAX_EVENTS);
        struct two_lease_event *event = &f->events[f->n_events++];
        *event = (struct two_lease_event){.at = at,
                                          .seq = ++f->seq,
                                          .type = type,
                                          .process = process,
                                          .incarnation = f->processes[process].incarnation};
        return event;
}

/* The delay of a message: usually short, with faults sometimes long. */
static hf_nsec two_lease_latency(struct two_lease_fixture *f) {
        if (two_lease_has_fault(f, 30))
                return two_lease_fixture_random_below(f, 12 * SEC);
        return 1 + two_lease_fixture_random_below(f, 5 * MSEC);
}

/* What a write of a Lease is for. The lock itself gives the old Lease back. */
static const char *kind_of(const struct two_lease_process *p, const struct hf__record *record) {
        bool by_lock =
                p->two.stage == HF__TWO_LEASE_UNDOING || p->two.stage == HF__TWO_LEASE_GIVING_BACK;

        if (record->holder[0] == '\0')
                return p->knows == KNOWS_BOTH && by_lock ? "a return" : "a release";
        return record->cause != HF__CAUSE_NONE ? "an acquire" : "a renewal";
}

void two_lease_send_request(struct two_lease_fixture *f, int process, enum hf__two_lease_side side,
                            bool write, uint32_t op_id, hf_nsec deadline,
                            const struct hf__record *record) {
        bool lost = two_lease_has_fault(f, 20);
        hf_nsec at = lost ? deadline : f->now + two_lease_latency(f);
        struct two_lease_event *event =
                two_lease_add_event(f, lost ? TWO_LEASE_REPLY : TWO_LEASE_REQUEST, process, at);

        f->processes[process].n_requests++;
        event->side = side;
        event->write = write;
        event->op_id = op_id;
        event->deadline = deadline;
        event->result = lost ? HF_E_TIMEOUT : 0;
        if (record)
                event->record = *record;
        if (write)
                STEP(f, process, "sends %s %s %u", kind_of(&f->processes[process], record),
                     two_lease_side_names[side], (unsigned)event->seq);
}

/* ---- the store ---- */

void two_lease_send_watch_event(struct two_lease_fixture *f, int process,
                                enum hf__two_lease_side side) {
        struct two_lease_process *p = &f->processes[process];

        if (!p->alive || p->watch == 0 || !two_lease_does_know(p, side))
                return;
        /* An event must not overtake an earlier event of the same Lease. */
        hf_nsec at = f->now + two_lease_latency(f);
        if (at > p->watched_at[side])
                p->watched_at[side] = at;
        struct two_lease_event *event =
                two_lease_add_event(f, TWO_LEASE_WATCH_EVENT, process, p->watched_at[side]);
        event->side = side;
        event->watch = p->watch;
        event->record = f->lease[side];
}

static void check_stays_stopped(const struct two_lease_fixture *f, enum hf__two_lease_side side,
                                const struct hf__record *record) {
        for (unsigned i = 0; i < f->n_processes && !f->steps; i++) {
                const struct two_lease_process *p = &f->processes[i];
                if (p->is_done && strcmp(record->holder, p->identity) == 0 &&
                    strcmp(record->holder, f->lease[side].holder) != 0)
                        FAIL(f, "a Lease is taken for %s (%d), which has stopped", p->identity,
                             p->knows);
        }
}

void two_lease_fixture_put(struct two_lease_fixture *f, enum hf__two_lease_side side,
                           const struct hf__record *record) {
        struct hf__record *lease = &f->lease[side];

        check_stays_stopped(f, side, record);
        /*
         * This is all that the real store and its term records do. The core and the lock must not
         * rely on more.
         */
        f->revision++;
        if (!hf__record_same_fields(lease, record))
                f->put_at[side] = f->now;
        if (!lease->exists || strcmp(lease->holder, record->holder) != 0 ||
            lease->acquire_us != record->acquire_us)
                f->term[side] = f->revision;
        *lease = *record;
        lease->exists = true;
        lease->cause = HF__CAUSE_NONE;
        lease->change_count = lease->term = 0;
        lease->unsettled = false;
        lease->rv_number = f->revision;
        (void)snprintf(lease->rv, sizeof lease->rv, "%u", (unsigned)f->revision);
        for (unsigned i = 0; i < f->n_processes; i++)
                two_lease_send_watch_event(f, (int)i, side);
}

/* Asserts that no process replaces or clears the unexpired record of another one. */
static void check_is_not_taken_early(const struct two_lease_fixture *f,
                                     const struct two_lease_event *event) {
        const struct hf__record *lease = &f->lease[event->side];
        const struct two_lease_process *p = &f->processes[event->process];

        if (f->steps || !lease->holder[0] || event->incarnation != p->incarnation ||
            strcmp(lease->holder, p->identity) == 0)
                return;
        if (f->now - f->put_at[event->side] < lease->duration_s * SEC)
                FAIL(f, "%s takes the %s Lease from %s", p->identity,
                     event->side == OLD ? "old" : "new", lease->holder);
}

static int apply_write(struct two_lease_fixture *f, const struct two_lease_event *event) {
        const struct hf__record *record = &event->record, *lease = &f->lease[event->side];

        if (!record->exists && lease->exists)
                return HF_E_EXISTS;
        if (record->exists && !lease->exists)
                return HF_E_NOT_FOUND;
        if (record->exists && strcmp(record->rv, lease->rv) != 0)
                return HF_E_CONFLICT;
        check_is_not_taken_early(f, event);
        if (f->steps)
                fprintf(f->steps, "store writes %u\n", (unsigned)event->seq);
        two_lease_fixture_put(f, event->side, record);
        return 0;
}

static int apply_request(struct two_lease_fixture *f, const struct two_lease_event *request) {
        if (request->write)
                return apply_write(f, request);
        return f->lease[request->side].exists ? 0 : HF_E_NOT_FOUND;
}

/* Applies a request and sends its reply. The sender sees a lost or late reply as a timeout. */
void two_lease_handle_request(struct two_lease_fixture *f, const struct two_lease_event *request) {
        int result = apply_request(f, request);
        hf_nsec at = f->now + two_lease_latency(f);
        bool lost = two_lease_has_fault(f, 20);
        hf_nsec when = lost || at > request->deadline ? request->deadline : at;
        struct two_lease_event *reply =
                two_lease_add_event(f, TWO_LEASE_REPLY, request->process, when);
        uint64_t seq = reply->seq;

        *reply = *request;
        reply->type = TWO_LEASE_REPLY;
        reply->at = when > f->now ? when : f->now;
        reply->seq = seq;
        reply->result = when < at ? HF_E_TIMEOUT : result;
        reply->record = f->lease[request->side];
}
