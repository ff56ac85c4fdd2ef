/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings of recent changes of each resource, and the states of its objects that are kept
 * (event_history.h).
 *
 * Invariants:
 *
 *  - The ring has every change after the floor, in the order of revisions, because a watch may
 *    begin at any revision from the floor on.
 *  - A version of an object is counted once, so that n_bytes is what the history keeps in memory:
 *    as `before` of the change that replaced it, or as the copy that a deletion makes. The version
 *    that a change has stored is not counted, because the tree has it, or a later change counts it.
 *  - A write copies the nodes of the tree that a kept state or another snapshot shares. The copies
 *    are counted for the newest kept state, if there is one.
 *
 * Dropping the oldest change raises the floor to its revision. The changes of one revision may then
 * be dropped one by one: none of them is needed, because no watch from a revision below the floor
 * is accepted. After an interruption, changes up to the floor may still be in the ring.
 */
#include "server/cacher/history/event_history.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/resources/rows/resource_table.h"

#define RING_MIN    16                    /* changes */
#define TRIM_PERIOD (5 * HF_NSEC_PER_SEC) /* how much longer than the window a change may stay */
#define NODE_BYTES  48                    /* of a tree, with malloc's overhead */

void hfd_event_histories_init(struct hfd_event_histories *histories) {
        memset(histories->of, 0, HFD_RESOURCES_MAX * sizeof histories->of[0]);
        histories->n_slots = HFD_RESOURCES_MAX;
        histories->n_bytes = 0;
        histories->floor = 0;
        histories->max_bytes = HFD_EVENT_HISTORY_BYTES;
        histories->window = HFD_EVENT_HISTORY_WINDOW;
        histories->due = HF_NSEC_NEVER;
}

struct hfd_event_history *hfd_event_history_of(struct hfd_event_histories *histories,
                                               size_t resource) {
        assert(resource < HFD_SLOTS_MAX);
        while (histories->n_slots <= resource)
                histories->of[histories->n_slots++] =
                        (struct hfd_event_history){.floor = histories->floor};
        return &histories->of[resource];
}

static struct hfd_history_entry *entry_at(const struct hfd_event_history *history, size_t i) {
        assert(i < history->n);
        return &history->ring->entries[(history->first + i) & (history->space - 1)];
}

static size_t change_bytes(const struct hfd_change *change) {
        size_t n = sizeof(struct hfd_history_entry);

        if (change->before)
                n += hfd_object_memory(change->before);
        if (change->type == HF_EVENT_DELETED)
                n += hfd_object_memory(change->object);
        return n;
}

static void count_bytes(struct hfd_event_histories *histories, struct hfd_event_history *history,
                        size_t added, size_t removed) {
        assert(history->n_bytes + added >= removed && histories->n_bytes + added >= removed);
        history->n_bytes = history->n_bytes + added - removed;
        histories->n_bytes = histories->n_bytes + added - removed;
}

/* ---- the ring ---- */

/* Gives the ring another size, 0 or a power of 2. False: out of memory. */
static bool resize_ring(struct hfd_event_history *history, size_t space) {
        struct hfd_history_ring *ring = NULL;

        assert(space >= history->n);
        if (space > 0 && !(ring = malloc(sizeof *ring + space * sizeof ring->entries[0])))
                return false;
        for (size_t i = 0; i < history->n; i++)
                ring->entries[i] = *entry_at(history, i);
        free(history->ring);
        history->ring = ring;
        history->space = space;
        history->first = 0;
        return true;
}

static void raise_floor(struct hfd_event_history *history, uint64_t revision) {
        history->floor = revision > history->floor ? revision : history->floor;
}

void hfd_event_history_interrupt(struct hfd_event_history *history, uint64_t revision) {
        raise_floor(history, revision);
}

static struct hfd_change remove_oldest(struct hfd_event_histories *histories,
                                       struct hfd_event_history *history) {
        struct hfd_change change = entry_at(history, 0)->change;

        raise_floor(history, change.object->revision); /* an interruption may have raised it more */
        count_bytes(histories, history, 0, change_bytes(&change));
        history->first = (history->first + 1) & (history->space - 1);
        assert(history->n > 0);
        history->n--;
        history->n_gone++;
        if (history->n == 0)
                (void)resize_ring(history, 0);
        else if (history->n < history->space / 4 && history->space > RING_MIN)
                (void)resize_ring(history, history->space / 2); /* on failure it stays too large */
        return change;
}

static void free_change(struct hfd_change *change) {
        hfd_object_unref(change->object);
        hfd_object_unref(change->before);
}

/* Moves the ring to garbage. The ring must be full: then every entry is in use, wherever the oldest
 * one is. */
static void drop_ring(struct hfd_event_histories *histories, struct hfd_event_history *history,
                      struct hfd_history_garbage *garbage) {
        size_t n_states_bytes = 0;

        assert(history->n > 0 && history->n == history->space);
        for (size_t i = 0; i < history->n_states; i++)
                n_states_bytes += history->states[i].n_bytes;
        /* The kept states are all that still counts. */
        count_bytes(histories, history, n_states_bytes, history->n_bytes);
        history->ring->n = history->n;
        history->ring->next = garbage->rings;
        garbage->rings = history->ring;
        history->n_gone += history->n;
        history->ring = NULL;
        history->space = history->first = history->n = 0;
}

/* ---- states ---- */

static struct hfd_object_tree remove_oldest_state(struct hfd_event_histories *histories,
                                                  struct hfd_event_history *history) {
        struct hfd_object_tree objects = history->states[0].objects;

        assert(history->n_states > 0);
        count_bytes(histories, history, 0, history->states[0].n_bytes);
        history->n_states--;
        memmove(history->states, history->states + 1, history->n_states * sizeof *history->states);
        return objects;
}

const struct hfd_object_tree *hfd_event_history_state(const struct hfd_event_history *history,
                                                      uint64_t changed) {
        for (size_t i = 0; i < history->n_states; i++)
                if (history->states[i].changed == changed)
                        return &history->states[i].objects;
        return NULL;
}

void hfd_event_history_keep(struct hfd_event_histories *histories, size_t resource,
                            uint64_t changed, const struct hfd_object_tree *objects,
                            struct hfd_history_garbage *garbage) {
        struct hfd_event_history *history = hfd_event_history_of(histories, resource);
        size_t i;

        if (changed < history->floor || hfd_event_history_state(history, changed))
                return;
        if (history->n_states == HFD_EVENT_HISTORY_STATES) {
                assert(garbage->n_states < HFD_EVENT_HISTORY_STATES);
                garbage->states[garbage->n_states++] = remove_oldest_state(histories, history);
        }
        for (i = history->n_states; i > 0 && history->states[i - 1].changed > changed; i--)
                history->states[i] = history->states[i - 1];
        history->states[i] =
                (struct hfd_history_state){.changed = changed,
                                           .objects = hfd_object_tree_snapshot(objects)};
        history->n_states++;
}

/* ---- adding and dropping ---- */

/* Counts the nodes that the change has copied. They count for the newest state, which may keep the
 * originals in memory. */
static void count_copied_nodes(struct hfd_event_histories *histories,
                               struct hfd_event_history *history,
                               const struct hfd_object_tree *tree) {
        size_t n_bytes = (size_t)(tree->n_copied - history->n_copied) * NODE_BYTES;

        history->n_copied = tree->n_copied;
        if (history->n_states == 0)
                return;
        history->states[history->n_states - 1].n_bytes += n_bytes;
        count_bytes(histories, history, n_bytes, 0);
}

uint16_t hfd_history_tag(const char *text, size_t n) {
        uint64_t tag = n;

        while (n > 0) {
                uint64_t word = 0;
                size_t n_word = n < sizeof word ? n : sizeof word;
                memcpy(&word, text, n_word);
                tag = (tag ^ word) * UINT64_C(0x9e3779b97f4a7c15);
                tag ^= tag >> 32;
                text += n_word;
                n -= n_word;
        }
        return (uint16_t)(tag >> 48); /* these bits depend on every byte */
}

static void set_tags(struct hfd_change *change) {
        const char *name = hfd_object_name(change->object);

        change->ns_tag = hfd_history_tag(change->object->path, change->object->n_ns);
        change->name_tag = hfd_history_tag(name, strlen(name));
}

bool hfd_event_history_add(struct hfd_event_histories *histories, struct hfd_change change,
                           const struct hfd_object_tree *tree, hf_nsec now,
                           struct hfd_history_garbage *garbage) {
        assert(change.object && change.type != HF_EVENT_BOOKMARK);
        struct hfd_event_history *history =
                hfd_event_history_of(histories, hfd_resource_index(change.object->resource));

        count_copied_nodes(histories, history, tree);
        if (history->n == history->space &&
            !resize_ring(history, history->space ? 2 * history->space : RING_MIN)) {
                if (history->n > 0)
                        drop_ring(histories, history, garbage);
                history->floor = change.object->revision;
                history->n_gone++;
                return false;
        }
        set_tags(&change);
        history->n++;
        *entry_at(history, history->n - 1) = (struct hfd_history_entry){change, now};
        count_bytes(histories, history, change_bytes(&change), 0);
        if (histories->due > now + histories->window + TRIM_PERIOD)
                histories->due = now + histories->window + TRIM_PERIOD;
        return true;
}

static struct hfd_event_history *largest_history(struct hfd_event_histories *histories) {
        struct hfd_event_history *largest = &histories->of[0];

        for (size_t i = 1; i < histories->n_slots; i++)
                if (histories->of[i].n_bytes > largest->n_bytes)
                        largest = &histories->of[i];
        return largest;
}

/* Drops the states that the history no longer reaches back to. False: garbage is full. */
static bool trim_states(struct hfd_event_histories *histories, struct hfd_event_history *history,
                        struct hfd_history_garbage *garbage) {
        while (history->n_states > 0 && history->states[0].changed < history->floor) {
                if (garbage->n_states == HFD_EVENT_HISTORY_STATES)
                        return false;
                garbage->states[garbage->n_states++] = remove_oldest_state(histories, history);
        }
        return true;
}

static bool drop_oldest(struct hfd_event_histories *histories, struct hfd_event_history *history,
                        struct hfd_history_garbage *garbage) {
        if (garbage->n == HFD_HISTORY_GARBAGE_MAX)
                return false;
        assert(garbage->n < HFD_HISTORY_GARBAGE_MAX);
        garbage->changes[garbage->n++] = remove_oldest(histories, history);
        return trim_states(histories, history, garbage);
}

bool hfd_event_histories_trim(struct hfd_event_histories *histories, hf_nsec now,
                              struct hfd_history_garbage *garbage) {
        while (histories->n_bytes > histories->max_bytes) {
                struct hfd_event_history *largest = largest_history(histories);
                if (largest->n == 0)
                        break; /* its bytes are those of states, which go when `due` is reached */
                if (!drop_oldest(histories, largest, garbage))
                        return false;
        }
        if (histories->due > now)
                return true;
        hf_nsec next = HF_NSEC_NEVER;
        for (size_t i = 0; i < histories->n_slots; i++) {
                struct hfd_event_history *history = &histories->of[i];
                while (history->n > 0 && entry_at(history, 0)->at + histories->window <= now)
                        if (!drop_oldest(histories, history, garbage))
                                return false;
                if (!trim_states(histories, history, garbage))
                        return false;
                if (history->n > 0 && entry_at(history, 0)->at < next)
                        next = entry_at(history, 0)->at;
        }
        histories->due = next == HF_NSEC_NEVER ? next : next + histories->window + TRIM_PERIOD;
        return true;
}

void hfd_history_garbage_free(struct hfd_history_garbage *garbage) {
        for (size_t i = 0; i < garbage->n; i++)
                free_change(&garbage->changes[i]);
        for (size_t i = 0; i < garbage->n_states; i++)
                hfd_object_tree_clear(&garbage->states[i]);
        while (garbage->rings) {
                struct hfd_history_ring *ring = garbage->rings;
                garbage->rings = ring->next;
                for (size_t i = 0; i < ring->n; i++)
                        free_change(&ring->entries[i].change);
                free(ring);
        }
        garbage->n = garbage->n_states = 0;
}

void hfd_event_histories_restart(struct hfd_event_histories *histories, uint64_t floor,
                                 struct hfd_event_histories *ret_old) {
        size_t n = histories->n_slots;

        memcpy(ret_old->of, histories->of, n * sizeof histories->of[0]);
        ret_old->n_slots = n;
        ret_old->n_bytes = histories->n_bytes;
        histories->n_bytes = 0;
        histories->due = HF_NSEC_NEVER;
        histories->floor = floor;
        for (size_t i = 0; i < n; i++) {
                const struct hfd_event_history *old = &ret_old->of[i];
                histories->of[i] =
                        (struct hfd_event_history){.floor = floor, .n_gone = old->n_gone + old->n};
        }
}

void hfd_event_histories_done(struct hfd_event_histories *histories) {
        for (size_t i = 0; i < histories->n_slots; i++) {
                struct hfd_event_history *history = &histories->of[i];
                while (history->n_states > 0) {
                        struct hfd_object_tree objects = remove_oldest_state(histories, history);
                        hfd_object_tree_clear(&objects);
                }
                while (history->n > 0) {
                        struct hfd_change change = remove_oldest(histories, history);
                        free_change(&change);
                }
                assert(history->n_bytes == 0);
        }
        assert(histories->n_bytes == 0);
        histories->due = HF_NSEC_NEVER;
}

/* ---- reading ---- */

const struct hfd_change *hfd_event_history_at(const struct hfd_event_history *history, size_t i) {
        return &entry_at(history, i)->change;
}

size_t hfd_event_history_after(const struct hfd_event_history *history, uint64_t revision) {
        size_t low = 0, high = history->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (entry_at(history, middle)->change.object->revision > revision)
                        high = middle;
                else
                        low = middle + 1;
        }
        return low;
}

bool hfd_event_history_resume(const struct hfd_event_history *history, uint64_t revision,
                              size_t *ret_i) {
        size_t after = hfd_event_history_after(history, revision), first = after;

        while (first > 0 && entry_at(history, first - 1)->change.object->revision == revision)
                first--;
        *ret_i = after - first > 1 ? first : after;
        /* At the floor itself, other changes of the same revision may have been dropped. */
        return first == after || revision > history->floor;
}

uint64_t hfd_event_history_number(const struct hfd_event_history *history, size_t i) {
        assert(i <= history->n);
        return history->n_gone + i;
}

bool hfd_event_history_seek(const struct hfd_event_history *history, uint64_t number,
                            size_t *ret_i) {
        assert(number <= history->n_gone + history->n);
        if (number < history->n_gone)
                return false;
        *ret_i = (size_t)(number - history->n_gone);
        return *ret_i == history->n ||
               entry_at(history, *ret_i)->change.object->revision > history->floor;
}

size_t hfd_event_history_find(const struct hfd_event_history *history, size_t i, size_t end,
                              const char *ns, const char *name) {
        bool by_ns = *ns != '\0', by_name = name != NULL;
        uint16_t ns_tag = hfd_history_tag(ns, strlen(ns)),
                 name_tag = by_name ? hfd_history_tag(name, strlen(name)) : 0;

        assert(end <= history->n);
        for (; i < end; i++) {
                const struct hfd_change *change = &entry_at(history, i)->change;
                if ((!by_ns || change->ns_tag == ns_tag) &&
                    (!by_name || change->name_tag == name_tag))
                        break;
        }
        return i < end ? i : end;
}

uint64_t hfd_event_history_changed(const struct hfd_event_history *history, uint64_t revision) {
        size_t after = hfd_event_history_after(history, revision);
        uint64_t last = after > 0 ? entry_at(history, after - 1)->change.object->revision : 0;

        return last > history->floor ? last : history->floor;
}
