/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An API server in memory behind hf_client_ops, for tests: one collection, revisions from 1,
 * watches with history, and switches for what goes wrong. Everything is answered on one thread of
 * its own, as a real client would.
 *
 * Included as source (api-fake.c) by the test that uses it. Thread: any.
 */
#include <holdfast/client_port.h>

struct api_fake;

struct api_fake *api_fake_new(const struct hf_host *host);
struct hf_client *api_fake_client(struct api_fake *fake); /* hf_client_free frees the fake */

/* Changes of the collection; each returns its revision. value goes into the object ("v"). */
uint64_t api_fake_put(struct api_fake *fake, const char *ns, const char *name, const char *value);
uint64_t api_fake_delete(struct api_fake *fake, const char *ns, const char *name);
/* Revisions rise without an event of this collection, as others write. */
uint64_t api_fake_other_writes(struct api_fake *fake, unsigned n);

void api_fake_compact(struct api_fake *fake); /* history is forgotten: old watches get HF_E_GONE */
void api_fake_end_watches(struct api_fake *fake, int error); /* those that are open, now */
void api_fake_end_watches_with(struct api_fake *fake, int error,
                               const char *message); /* the same; the status' words, static */
/* The server's store is replaced by a backup of that revision: the objects stay, history is gone,
 * open watches go on. */
void api_fake_set_back(struct api_fake *fake, uint64_t revision);
void api_fake_bookmark(struct api_fake *fake); /* to all watches that want one */
void api_fake_fail_lists(struct api_fake *fake, unsigned n, int error); /* the next n */
void api_fake_fail_list(struct api_fake *fake, unsigned number,
                        int error); /* that one, counted from the first ever */
void api_fake_page(struct api_fake *fake,
                   size_t n); /* lists have no more objects at a time; 0 = what limit says */
void api_fake_hold_pages(struct api_fake *fake,
                         bool hold); /* pages but the first are not answered while held */
void api_fake_mute_watches(struct api_fake *fake, bool mute); /* events are held back while muted */
void api_fake_hold_calls(struct api_fake *fake,
                         bool hold); /* calls are taken but not answered while held */

unsigned api_fake_n_lists(struct api_fake *fake);
void api_fake_last_query(struct api_fake *fake, char text[160]); /* of the newest list; "" = none */
unsigned api_fake_n_watches(struct api_fake *fake);              /* started, ever */
unsigned api_fake_n_open(struct api_fake *fake);                 /* watches open now */
/* Blocks until n watches were started ever and one is open; tests fail by their time limit. */
void api_fake_await_watch(struct api_fake *fake, unsigned n);
void api_fake_await_list(struct api_fake *fake,
                         unsigned n); /* likewise, until n lists were asked for ever */
