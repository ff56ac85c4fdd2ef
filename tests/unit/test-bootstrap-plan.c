/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core of bootstrap, in a simulation without time. A store has objects and a ledger, and
 * instances do what the core decides, one action per tick. An instance dies at any tick, before or
 * after the store has applied its write. Every tick of every scenario is tried.
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bootstrap/plan.h"

#define N_OBJECTS 4
#define FOR_EVER  10000

struct object {
        bool exists;
        hf__hash present, stamp;
        unsigned n_creates, n_replaces;
};

struct fixture {
        struct object objects[N_OBJECTS];
        struct hf__ledger ledger;
        unsigned n_records[N_OBJECTS], n_completes, n_ticks;
};

struct instance {
        const char *version;
        struct hf__step steps[N_OBJECTS];
        struct hf__steps list;
};

static const char *const ids[N_OBJECTS] = {"a", "b", "c", "d"};

/* A hash is one letter. Fields that the server adds change it. */
static void hash_of(char message, hf__hash hash) {
        memset(hash, message, HF__HASH_DIGITS);
        hash[HF__HASH_DIGITS] = '\0';
}
static void made_of(const char *hash, hf__hash made) {
        memcpy(made, hash, sizeof(hf__hash));
        made[0] = '0';
}

/* contents: one letter per object; '.' = this version does not have the object. */
static struct instance *instance(struct instance *instance, const char *version,
                                 const char *contents) {
        *instance = (struct instance){.version = version, .list = {.list = instance->steps}};
        for (size_t i = 0; contents[i]; i++) {
                if (contents[i] == '.')
                        continue;
                struct hf__step *step = &instance->steps[instance->list.n++];
                step->id = (char *)ids[i];
                hash_of(contents[i], step->hash);
        }
        return instance;
}

static unsigned index_of(const struct hf__step *step) { return (unsigned)(step->id[0] - 'a'); }

static void create(struct object *object, const struct hf__step *step, struct hf__seen *seen) {
        if (object->exists) {
                seen->state = HF__SEEN_EXISTS;
                return;
        }
        object->exists = true;
        object->n_creates++;
        made_of(step->hash, object->present);
        memcpy(object->stamp, step->hash, sizeof object->stamp);
        *seen = (struct hf__seen){.state = HF__SEEN_CREATED};
        memcpy(seen->result, object->present, sizeof seen->result);
}

static void look(const struct object *object, struct hf__seen *seen) {
        *seen = (struct hf__seen){.state = object->exists ? HF__SEEN_PRESENT : HF__SEEN_ABSENT};
        memcpy(seen->stamp, object->stamp, sizeof seen->stamp);
        memcpy(seen->present, object->present, sizeof seen->present);
}

static void replace(struct object *object, const struct hf__step *step, bool dry_run,
                    struct hf__seen *seen) {
        *seen = (struct hf__seen){.state = HF__SEEN_NOTHING};
        if (!object->exists)
                return;
        seen->state = dry_run ? HF__SEEN_DRY_RUN : HF__SEEN_REPLACED;
        made_of(step->hash, seen->result);
        if (dry_run)
                return;
        object->n_replaces++;
        memcpy(object->present, seen->result, sizeof object->present);
        memcpy(object->stamp, step->hash, sizeof object->stamp);
}

static void write_record(struct fixture *f, const struct instance *instance,
                         const struct hf__plan *plan) {
        const struct hf__step *step = &instance->list.list[plan->step];
        struct hf__ledger_entry entry = {.step = step->id, .outcome = plan->outcome};

        memcpy(entry.hash, step->hash, sizeof entry.hash);
        memcpy(entry.applied, plan->applied, sizeof entry.applied);
        (void)snprintf(entry.version, sizeof entry.version, "%s", instance->version);
        assert_int_equal(hf__ledger_add(&f->ledger, &entry), 0);
        f->n_records[index_of(step)]++;
}

/* Carries out one action. */
static void act(struct fixture *f, const struct instance *instance, const struct hf__plan *plan,
                struct hf__seen *seen) {
        const struct hf__step *step = &instance->list.list[plan->step];
        struct object *object =
                plan->action == HF__PLAN_COMPLETE ? NULL : &f->objects[index_of(step)];

        switch (plan->action) {
        case HF__PLAN_CREATE: create(object, step, seen); break;
        case HF__PLAN_READ: look(object, seen); break;
        case HF__PLAN_DRY_RUN: replace(object, step, true, seen); break;
        case HF__PLAN_REPLACE: replace(object, step, false, seen); break;
        case HF__PLAN_RECORD:
                write_record(f, instance, plan);
                *seen = (struct hf__seen){0};
                break;
        case HF__PLAN_COMPLETE:
                assert_int_equal(hf__ledger_complete(&f->ledger, "p", instance->version, "now"), 0);
                f->n_completes++;
                break;
        case HF__PLAN_FINISHED: break;
        }
}

/*
 * Leads until nothing is left to do, or dies at tick die_at, before or after the store has applied
 * the write. Returns whether it finished.
 */
static bool lead(struct fixture *f, const struct instance *instance, unsigned die_at, bool heard) {
        struct hf__seen seen = {0};
        struct hf__plan plan;

        for (unsigned tick = 0;; tick++) {
                assert_true(tick < 100);
                hf__plan_next(&f->ledger, "p", &instance->list, instance->version, &seen, &plan);
                if (plan.action == HF__PLAN_FINISHED)
                        return true;
                if (tick == die_at && !heard)
                        return false;
                f->n_ticks++;
                act(f, instance, &plan, &seen);
                if (tick == die_at)
                        return false;
        }
}

static void finish(struct fixture *f, const struct instance *instance) {
        assert_true(lead(f, instance, FOR_EVER, false));
}

static void edit(struct fixture *f, unsigned i, char message) {
        f->objects[i].exists = true;
        hash_of(message, f->objects[i].present);
}
static void delete (struct fixture *f, unsigned i) { f->objects[i].exists = false; }

static void assert_present(const struct fixture *f, unsigned i, char message, bool made) {
        hf__hash hash, expected;

        hash_of(message, hash);
        if (made)
                made_of(hash, expected);
        assert_true(f->objects[i].exists);
        assert_string_equal(f->objects[i].present, made ? expected : hash);
}
static enum hf__outcome outcome(const struct fixture *f, unsigned i) {
        const struct hf__ledger_entry *entry = hf__ledger_find(&f->ledger, ids[i]);
        assert_non_null(entry);
        return entry->outcome;
}

/* Asserts that this instance writes nothing while it leads. */
static void assert_quiet(struct fixture *f, const struct instance *instance) {
        struct fixture before = *f;
        finish(f, instance);
        assert_memory_equal(f->objects, before.objects, sizeof before.objects);
        assert_memory_equal(f->n_records, before.n_records, sizeof before.n_records);
        assert_int_equal(f->n_completes, before.n_completes);
}

static void done(struct fixture *f) {
        hf__ledger_done(&f->ledger);
        *f = (struct fixture){0};
}

/* ---- an empty store ---- */

static void assert_all_once(const struct fixture *f) {
        for (unsigned i = 0; i < N_OBJECTS; i++) {
                assert_int_equal(f->objects[i].n_creates, 1);
                assert_int_equal(f->objects[i].n_replaces, 0);
                assert_int_equal(f->n_records[i], 1);
                assert_int_equal(outcome(f, i), HF__OUTCOME_CREATED);
                assert_present(f, i, (char)('a' + i), true);
                hf__hash made;
                made_of(f->objects[i].stamp, made);
                assert_string_equal(hf__ledger_find(&f->ledger, ids[i])->applied, made);
        }
        assert_int_equal(f->n_completes, 1);
}

static void test_each_step_is_applied_once(void **state) {
        struct instance v1;
        struct fixture f = {0};

        instance(&v1, "1.0.0", "abcd");
        finish(&f, &v1);
        assert_all_once(&f);
        assert_int_equal(f.n_ticks, 2 * N_OBJECTS + 1);
        assert_quiet(&f, &v1);
        done(&f);
}

/*
 * Leader and successor die, at every combination of ticks, each before and after the
 * store has applied the write.
 */
static void test_each_step_is_applied_once_with_crashes_anywhere(void **state) {
        struct instance v1;
        unsigned n = 0;

        instance(&v1, "1.0.0", "abcd");
        for (unsigned first = 0; first < 2 * N_OBJECTS + 1; first++)
                for (unsigned second = 0; second < 20; second++)
                        for (unsigned heard = 0; heard < 4; heard++) {
                                struct fixture f = {0};
                                (void)lead(&f, &v1, first, heard & 1);
                                (void)lead(&f, &v1, second, heard & 2);
                                finish(&f, &v1);
                                assert_all_once(&f);
                                done(&f);
                                n++;
                        }
        assert_int_equal(n, 9 * 20 * 4);
}

/* ---- changes by users ---- */

/* Does one action, and returns which one. */
static enum hf__plan_action do_next(struct fixture *f, const struct instance *instance,
                                    struct hf__seen *seen) {
        struct hf__plan plan;

        hf__plan_next(&f->ledger, "p", &instance->list, instance->version, seen, &plan);
        act(f, instance, &plan, seen);
        return plan.action;
}

/* A user's object prevents the create, and the user deletes it before it is read. */
static void test_an_object_that_is_gone_after_a_refused_create_is_created(void **state) {
        struct hf__seen seen = {0};
        struct fixture f = {0};
        struct instance v1;

        instance(&v1, "1.0.0", "a");
        edit(&f, 0, 'u');
        assert_int_equal(do_next(&f, &v1, &seen), HF__PLAN_CREATE);
        delete (&f, 0);
        assert_int_equal(do_next(&f, &v1, &seen), HF__PLAN_READ);
        assert_int_equal(do_next(&f, &v1, &seen), HF__PLAN_CREATE);
        assert_int_equal(do_next(&f, &v1, &seen), HF__PLAN_RECORD);
        assert_present(&f, 0, 'a', true);
        assert_int_equal(outcome(&f, 0), HF__OUTCOME_CREATED);
        done(&f);
}

static void test_existing_objects_are_kept(void **state) {
        struct instance v1, v2;
        struct fixture f = {0};

        instance(&v1, "1.0.0", "abcd");
        instance(&v2, "2.0.0", "ebcd");
        edit(&f, 0, 'f');
        finish(&f, &v1);
        assert_int_equal(outcome(&f, 0), HF__OUTCOME_FOUND);
        finish(&f, &v2);
        assert_present(&f, 0, 'f', false);
        assert_int_equal(outcome(&f, 0), HF__OUTCOME_KEPT);
        assert_int_equal(f.objects[0].n_creates + f.objects[0].n_replaces, 0);
        done(&f);
}

/*
 * An upgrade: a stays the same, b is edited, c is deleted, d changes. The upgrading instance dies
 * at every tick.
 */
static void upgrade_with_death_at(unsigned die_at, bool heard, bool older_in_between) {
        struct instance v1, v2;
        struct fixture f = {0};

        instance(&v1, "1.0.0", "abcd");
        instance(&v2, "1.1.0-rc.1", "a345");
        finish(&f, &v1);
        edit(&f, 1, 'e');
        delete (&f, 2);
        assert_quiet(&f, &v1);
        (void)lead(&f, &v2, die_at, heard);
        if (older_in_between)
                finish(&f, &v1);
        finish(&f, &v2);
        assert_present(&f, 0, 'a', true);
        assert_present(&f, 1, 'e', false);
        assert_false(f.objects[2].exists);
        assert_present(&f, 3, '5', true);
        assert_int_equal(outcome(&f, 0), HF__OUTCOME_CREATED);
        assert_int_equal(outcome(&f, 1), HF__OUTCOME_KEPT);
        assert_int_equal(outcome(&f, 2), HF__OUTCOME_DELETED);
        assert_int_equal(outcome(&f, 3), HF__OUTCOME_UPDATED);
        for (unsigned i = 0; i < N_OBJECTS; i++) {
                assert_int_equal(f.objects[i].n_creates, 1);
                assert_int_equal(f.objects[i].n_replaces, i == 3);
                assert_int_equal(f.n_records[i], i == 0 ? 1 : 2);
        }
        assert_int_equal(f.n_completes, 2);
        assert_quiet(&f, &v1); /* the older version undoes nothing */
        assert_quiet(&f, &v2);
        done(&f);
}

static void test_an_upgrade_applies_changes_to_objects_that_nobody_edited(void **state) {
        for (unsigned die_at = 0; die_at < 12; die_at++)
                for (unsigned i = 0; i < 4; i++)
                        upgrade_with_death_at(die_at, i & 1, i & 2);
}

static void test_an_edit_before_the_write_is_recorded_is_detected(void **state) {
        struct instance v1, v2, v3;
        struct fixture f = {0};

        instance(&v1, "1.0.0", "a");
        instance(&v2, "2.0.0", "b");
        instance(&v3, "3.0.0", "c");
        assert_false(lead(&f, &v1, 0, true)); /* created, but not recorded */
        edit(&f, 0, 'e');
        finish(&f, &v1);
        assert_int_equal(outcome(&f, 0), HF__OUTCOME_CREATED);
        finish(&f, &v2);
        assert_present(&f, 0, 'e', false);
        assert_int_equal(outcome(&f, 0), HF__OUTCOME_KEPT);
        /* The same with a replacement. */
        edit(&f, 0, 'a');
        /* the user has restored the applied content: it belongs to the bootstrap again */
        f.objects[0].present[0] = '0';
        assert_false(lead(&f, &v3, 1, true));
        assert_present(&f, 0, 'c', true);
        edit(&f, 0, 'f');
        finish(&f, &v3);
        assert_present(&f, 0, 'f', false);
        assert_int_equal(outcome(&f, 0), HF__OUTCOME_UPDATED);
        instance(&v1, "4.0.0", "d");
        finish(&f, &v1);
        assert_present(&f, 0, 'f', false);
        done(&f);
}

static void test_deleted_and_recreated_objects_are_left_alone(void **state) {
        struct instance v1, v2, v3;
        struct fixture f = {0};

        instance(&v1, "1.0.0", "a");
        finish(&f, instance(&v1, "1.0.0", "a"));
        delete (&f, 0);
        assert_quiet(&f, &v1);
        finish(&f, instance(&v2, "2.0.0", "b"));
        assert_false(f.objects[0].exists);
        f.objects[0].stamp[0] = '\0';
        edit(&f, 0, 'e');
        finish(&f, instance(&v3, "3.0.0", "c"));
        assert_present(&f, 0, 'e', false);
        done(&f);
}

/* ---- mixed versions ---- */

static void test_an_older_version_skips_a_phase_that_a_newer_one_completed(void **state) {
        struct instance v1, v2;
        struct fixture f = {0};

        finish(&f, instance(&v2, "2.0.0", "a.cd"));
        assert_quiet(&f, instance(&v1, "1.9.9", "abce"));
        assert_false(f.objects[1].exists); /* the newer version does not have it, so it stays */
        done(&f);
}

static void test_an_older_version_takes_over_during_a_newer_ones_first_run(void **state) {
        struct instance v1, v2;

        for (unsigned die_at = 0; die_at < 9; die_at++)
                for (unsigned heard = 0; heard < 2; heard++) {
                        struct fixture f = {0};
                        instance(&v1, "1.0.0", "abcd");
                        instance(&v2, "2.0.0", "efcd");
                        (void)lead(&f, &v2, die_at, heard);
                        bool newer_completed = f.n_completes > 0;
                        finish(&f, &v1);
                        /* the phase is complete, so instances become ready */
                        assert_int_equal(f.n_completes, 1);
                        finish(&f, &v2);
                        assert_quiet(&f, &v1);
                        assert_quiet(&f, &v2);
                        assert_int_equal(f.n_completes, newer_completed ? 1 : 2);
                        /*
                         * For the older version, an object that the newer one wrote but did not
                         * record is foreign, and stays.
                         */
                        assert_present(&f, 0, 'e', true);
                        assert_present(&f, 1, 'f', true);
                        for (unsigned i = 0; i < N_OBJECTS; i++)
                                assert_int_equal(f.objects[i].n_creates, 1);
                        done(&f);
                }
}

static void test_equal_versions_with_different_contents_do_not_fight(void **state) {
        struct instance old, new;
        struct fixture f = {0};

        instance(&old, "1.0.0", "a");
        instance(&new, "1.0.0", "b");
        finish(&f, &old);
        finish(&f, &new);
        assert_present(&f, 0, 'b', true);
        for (unsigned i = 0; i < 5; i++) {
                assert_quiet(&f, &old);
                assert_quiet(&f, &new);
        }
        /* A newer version may return to a previous content. */
        finish(&f, instance(&old, "1.0.1", "a"));
        assert_present(&f, 0, 'a', true);
        assert_quiet(&f, &new);
        done(&f);
}

static void test_the_history_of_contents_is_bounded(void **state) {
        struct instance one;
        struct fixture f = {0};
        const char *const contents[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c"};

        for (unsigned i = 0; i < 12; i++)
                finish(&f, instance(&one, "1.0.0", contents[i]));
        assert_int_equal(hf__ledger_find(&f.ledger, "a")->n_superseded, HF__SUPERSEDED_MAX);
        assert_quiet(&f, instance(&one, "1.0.0", "5"));
        assert_int_equal(f.n_completes, 1); /* the same version completes a phase once */
        done(&f);
}

static void test_steps_added_later_are_applied(void **state) {
        struct instance one;
        struct fixture f = {0};

        finish(&f, instance(&one, "1.0.0", "ab"));
        finish(&f, instance(&one, "1.0.0", "abcd"));
        assert_all_once(&f);
        done(&f);
}

static void test_a_completion_of_an_unknown_version_blocks_nothing(void **state) {
        struct instance one;
        struct fixture f = {.ledger = {.n_completed = 1, .completed = {{.phase = "p"}}}};

        finish(&f, instance(&one, "1.0.0", "abcd"));
        assert_all_once(&f);
        done(&f);
}

/* ---- steps that are done together ---- */

enum { ALL = (1 << N_OBJECTS) - 1 };

static void set_any_order(struct instance *instance, size_t n) {
        for (size_t i = 0; i < n; i++)
                instance->steps[i].any_order = true;
}

/* How a leader dies: when the store has applied the creates of only these objects, or after all of
 * them, before or after it has applied the record. */
struct death {
        unsigned creates; /* one bit for each object */
        enum { LIVES, IN_CREATES, IN_RECORD, AFTER_RECORD } when;
};

/* Creates what the plan allows together, and records what was created. Returns false if the leader
 * has died. */
static bool act_together(struct fixture *f, const struct instance *instance, size_t first,
                         const struct death *death, bool *found) {
        size_t list[N_OBJECTS], n_created = 0;
        struct hf__plan records[N_OBJECTS];
        size_t n = hf__plan_together(&f->ledger, "p", &instance->list, instance->version, first,
                                     list, N_OBJECTS);

        for (size_t i = 0; i < n; i++) {
                const struct hf__step *step = &instance->list.list[list[i]];
                struct hf__seen seen = {0};
                if (death->when == IN_CREATES && !(death->creates & (1u << index_of(step))))
                        continue;
                create(&f->objects[index_of(step)], step, &seen);
                *found = *found || seen.state == HF__SEEN_EXISTS;
                if (seen.state != HF__SEEN_CREATED)
                        continue;
                struct hf__plan *record = &records[n_created++];
                *record = (struct hf__plan){.action = HF__PLAN_RECORD,
                                            .step = list[i],
                                            .outcome = HF__OUTCOME_CREATED};
                memcpy(record->applied, seen.result, sizeof record->applied);
        }
        if (death->when == IN_CREATES || death->when == IN_RECORD)
                return false;
        for (size_t i = 0; i < n_created; i++)
                write_record(f, instance, &records[i]);
        return death->when != AFTER_RECORD;
}

/* Like lead(), but does the steps without an order together, until it finds an existing object. */
static bool lead_together(struct fixture *f, const struct instance *instance,
                          const struct death *death) {
        struct hf__seen seen = {0};
        struct hf__plan plan;
        bool found = false;

        for (unsigned tick = 0;; tick++) {
                assert_true(tick < 100);
                hf__plan_next(&f->ledger, "p", &instance->list, instance->version, &seen, &plan);
                if (plan.action == HF__PLAN_FINISHED)
                        return true;
                f->n_ticks++;
                if (plan.action != HF__PLAN_CREATE || found ||
                    !instance->list.list[plan.step].any_order)
                        act(f, instance, &plan, &seen);
                else if (!act_together(f, instance, plan.step, death, &found))
                        return false;
        }
}

static const struct death lives = {.when = LIVES};

static void test_steps_of_any_order_are_done_together(void **state) {
        struct instance v1;
        struct fixture f = {0};

        set_any_order(instance(&v1, "1.0.0", "abcd"), N_OBJECTS);
        assert_true(lead_together(&f, &v1, &lives));
        assert_all_once(&f);
        assert_int_equal(f.n_ticks, 2); /* all objects and records, and the completion */
        assert_quiet(&f, &v1);
        done(&f);
}

/* Two leaders die, each with any of the objects written. A leader that finds an object goes on with
 * one step after another, so it does not die in the ways of this test. */
static void test_steps_done_together_are_applied_once_with_crashes_anywhere(void **state) {
        struct instance v1;
        unsigned n = 0;

        set_any_order(instance(&v1, "1.0.0", "abcd"), N_OBJECTS);
        for (unsigned first = 0; first <= ALL; first++)
                for (unsigned second = 0; second <= ALL; second++)
                        for (unsigned when = 0; when < 9; when++) {
                                const struct death a = {first, IN_CREATES + when % 3},
                                                   b = {second, IN_CREATES + when / 3};
                                struct fixture f = {0};
                                (void)lead_together(&f, &v1, &a);
                                (void)lead_together(&f, &v1, &b);
                                assert_true(lead_together(&f, &v1, &lives));
                                assert_all_once(&f);
                                assert_quiet(&f, &v1);
                                done(&f);
                                n++;
                        }
        assert_int_equal(n, 16 * 16 * 9);
}

/* A user has made or edited any of the objects, before or between the leaders. */
static void test_objects_of_users_are_kept_by_steps_done_together(void **state) {
        struct instance v1;

        set_any_order(instance(&v1, "1.0.0", "abcd"), N_OBJECTS);
        for (unsigned mine = 0; mine <= ALL; mine++)
                for (unsigned written = 0; written <= ALL; written++) {
                        const struct death death = {written, IN_CREATES};
                        struct fixture f = {0};
                        for (unsigned i = 0; i < 2; i++)
                                if (mine & (1u << i))
                                        edit(&f, i, 'x');
                        (void)lead_together(&f, &v1, &death);
                        for (unsigned i = 2; i < N_OBJECTS; i++)
                                if (mine & (1u << i))
                                        edit(&f, i, 'y');
                        assert_true(lead_together(&f, &v1, &lives));
                        for (unsigned i = 0; i < N_OBJECTS; i++) {
                                bool users = mine & (1u << i);
                                bool found = users && (i < 2 || !(written & (1u << i)));
                                char written_by_users = i < 2 ? 'x' : 'y';
                                assert_present(&f, i, users ? written_by_users : (char)('a' + i),
                                               !users);
                                assert_int_equal(outcome(&f, i),
                                                 found ? HF__OUTCOME_FOUND : HF__OUTCOME_CREATED);
                                assert_int_equal(f.objects[i].n_creates, found ? 0 : 1);
                                assert_int_equal(f.n_records[i], 1);
                        }
                        done(&f);
                }
}

static void assert_together(const struct fixture *f, const struct instance *instance, size_t first,
                            size_t max, const char *expected) {
        size_t list[N_OBJECTS];
        char text[N_OBJECTS + 1] = "";
        size_t n = hf__plan_together(&f->ledger, "p", &instance->list, instance->version, first,
                                     list, max);

        assert_in_range(n, 1, max);
        for (size_t i = 0; i < n; i++)
                text[i] = instance->list.list[list[i]].id[0];
        assert_string_equal(text, expected);
}

static void test_only_steps_of_any_order_without_a_record_are_done_together(void **state) {
        struct instance v1, v2;
        struct fixture f = {0};
        struct hf__plan record = {.outcome = HF__OUTCOME_CREATED};

        instance(&v1, "1.0.0", "abcd");
        assert_together(&f, &v1, 0, 4, "a");
        set_any_order(&v1, 3); /* only d must follow the others */
        assert_together(&f, &v1, 0, 4, "abc");
        assert_together(&f, &v1, 1, 4, "bc");
        assert_together(&f, &v1, 0, 2, "ab");
        assert_together(&f, &v1, 0, 1, "a");
        assert_together(&f, &v1, 3, 4, "d");
        assert_int_equal(hf__plan_n_settled(&f.ledger, &v1.list, "1.0.0"), 0);
        record.step = 1;
        write_record(&f, &v1, &record); /* another leader wrote the record; it created c too, but
                                           without a record */
        assert_together(&f, &v1, 0, 4, "ac");
        assert_int_equal(hf__plan_n_settled(&f.ledger, &v1.list, "1.0.0"), 0);
        record.step = 0;
        write_record(&f, &v1, &record);
        assert_int_equal(hf__plan_n_settled(&f.ledger, &v1.list, "1.0.0"), 2);
        set_any_order(instance(&v2, "2.0.0", "xbcd"), N_OBJECTS);
        assert_int_equal(hf__plan_n_settled(&f.ledger, &v2.list, "2.0.0"), 0);
        f.ledger.entries[0].hash[0] = 'y'; /* b has another content: it must be read first */
        assert_together(&f, &v2, 0, 4, "a");
        /* The phase is in use, so the steps are done one after another. */
        assert_int_equal(hf__ledger_complete(&f.ledger, "p", "0.9.0", "now"), 0);
        assert_together(&f, &v1, 2, 4, "c");
        done(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_step_is_applied_once),
                cmocka_unit_test(test_each_step_is_applied_once_with_crashes_anywhere),
                cmocka_unit_test(test_an_object_that_is_gone_after_a_refused_create_is_created),
                cmocka_unit_test(test_existing_objects_are_kept),
                cmocka_unit_test(test_an_upgrade_applies_changes_to_objects_that_nobody_edited),
                cmocka_unit_test(test_an_edit_before_the_write_is_recorded_is_detected),
                cmocka_unit_test(test_deleted_and_recreated_objects_are_left_alone),
                cmocka_unit_test(test_an_older_version_skips_a_phase_that_a_newer_one_completed),
                cmocka_unit_test(test_an_older_version_takes_over_during_a_newer_ones_first_run),
                cmocka_unit_test(test_equal_versions_with_different_contents_do_not_fight),
                cmocka_unit_test(test_the_history_of_contents_is_bounded),
                cmocka_unit_test(test_steps_added_later_are_applied),
                cmocka_unit_test(test_a_completion_of_an_unknown_version_blocks_nothing),
                cmocka_unit_test(test_steps_of_any_order_are_done_together),
                cmocka_unit_test(test_steps_done_together_are_applied_once_with_crashes_anywhere),
                cmocka_unit_test(test_objects_of_users_are_kept_by_steps_done_together),
                cmocka_unit_test(test_only_steps_of_any_order_without_a_record_are_done_together),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
