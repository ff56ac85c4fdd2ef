/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core of bootstrap, in a world without time: a store with objects and a ledger, instances that
 * do what the core says, one thing a tick, and die at any tick, before the store has heard of it or
 * after. Every tick of every story is tried.
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

struct world {
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

/* A hash that is told by one letter; the server's own additions make another of it. */
static void hash_of(char message, hf__hash hash) {
        memset(hash, message, HF__HASH_DIGITS);
        hash[HF__HASH_DIGITS] = '\0';
}
static void made_of(const char *hash, hf__hash made) {
        memcpy(made, hash, sizeof(hf__hash));
        made[0] = '0';
}

/* contents: a letter per object, '.' = the version does not have it. */
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
        seen->state = dry_run ? HF__SEEN_TRIED : HF__SEEN_REPLACED;
        made_of(step->hash, seen->result);
        if (dry_run)
                return;
        object->n_replaces++;
        memcpy(object->present, seen->result, sizeof object->present);
        memcpy(object->stamp, step->hash, sizeof object->stamp);
}

static void write_record(struct world *world, const struct instance *instance,
                         const struct hf__plan *plan) {
        const struct hf__step *step = &instance->list.list[plan->step];
        struct hf__ledger_entry entry = {.step = step->id, .outcome = plan->outcome};

        memcpy(entry.hash, step->hash, sizeof entry.hash);
        memcpy(entry.applied, plan->applied, sizeof entry.applied);
        (void)snprintf(entry.version, sizeof entry.version, "%s", instance->version);
        assert_int_equal(hf__ledger_add(&world->ledger, &entry), 0);
        world->n_records[index_of(step)]++;
}

/* Does one thing to the world. */
static void act(struct world *world, const struct instance *instance, const struct hf__plan *plan,
                struct hf__seen *seen) {
        const struct hf__step *step = &instance->list.list[plan->step];
        struct object *object =
                plan->action == HF__PLAN_COMPLETE ? NULL : &world->objects[index_of(step)];

        switch (plan->action) {
        case HF__PLAN_CREATE: create(object, step, seen); break;
        case HF__PLAN_READ: look(object, seen); break;
        case HF__PLAN_TRY: replace(object, step, true, seen); break;
        case HF__PLAN_REPLACE: replace(object, step, false, seen); break;
        case HF__PLAN_RECORD:
                write_record(world, instance, plan);
                *seen = (struct hf__seen){0};
                break;
        case HF__PLAN_COMPLETE:
                assert_int_equal(hf__ledger_complete(&world->ledger, "p", instance->version, "now"),
                                 0);
                world->n_completes++;
                break;
        case HF__PLAN_FINISHED: break;
        }
}

/* Leads until there is nothing to do, or dies at tick die_at, before or after the store heard of
 * it. True: finished. */
static bool lead(struct world *world, const struct instance *instance, unsigned die_at,
                 bool heard) {
        struct hf__seen seen = {0};
        struct hf__plan plan;

        for (unsigned tick = 0;; tick++) {
                assert_true(tick < 100);
                hf__plan_next(&world->ledger, "p", &instance->list, instance->version, &seen,
                              &plan);
                if (plan.action == HF__PLAN_FINISHED)
                        return true;
                if (tick == die_at && !heard)
                        return false;
                world->n_ticks++;
                act(world, instance, &plan, &seen);
                if (tick == die_at)
                        return false;
        }
}

static void finish(struct world *world, const struct instance *instance) {
        assert_true(lead(world, instance, FOR_EVER, false));
}

static void edit(struct world *world, unsigned i, char message) {
        world->objects[i].exists = true;
        hash_of(message, world->objects[i].present);
}
static void delete (struct world *world, unsigned i) { world->objects[i].exists = false; }

static void assert_present(const struct world *world, unsigned i, char message, bool made) {
        hf__hash hash, expected;

        hash_of(message, hash);
        if (made)
                made_of(hash, expected);
        assert_true(world->objects[i].exists);
        assert_string_equal(world->objects[i].present, made ? expected : hash);
}
static enum hf__outcome outcome(const struct world *world, unsigned i) {
        const struct hf__ledger_entry *entry = hf__ledger_find(&world->ledger, ids[i]);
        assert_non_null(entry);
        return entry->outcome;
}

/* Nobody writes anything when this instance leads. */
static void assert_quiet(struct world *world, const struct instance *instance) {
        struct world before = *world;
        finish(world, instance);
        assert_memory_equal(world->objects, before.objects, sizeof before.objects);
        assert_memory_equal(world->n_records, before.n_records, sizeof before.n_records);
        assert_int_equal(world->n_completes, before.n_completes);
}

static void done(struct world *world) {
        hf__ledger_done(&world->ledger);
        *world = (struct world){0};
}

/* ---- an empty store ---- */

static void assert_all_once(const struct world *world) {
        for (unsigned i = 0; i < N_OBJECTS; i++) {
                assert_int_equal(world->objects[i].n_creates, 1);
                assert_int_equal(world->objects[i].n_replaces, 0);
                assert_int_equal(world->n_records[i], 1);
                assert_int_equal(outcome(world, i), HF__OUTCOME_CREATED);
                assert_present(world, i, (char)('a' + i), true);
                hf__hash made;
                made_of(world->objects[i].stamp, made);
                assert_string_equal(hf__ledger_find(&world->ledger, ids[i])->applied, made);
        }
        assert_int_equal(world->n_completes, 1);
}

static void test_each_step_is_taken_once(void **state) {
        struct instance v1;
        struct world world = {0};

        instance(&v1, "1.0.0", "abcd");
        finish(&world, &v1);
        assert_all_once(&world);
        assert_int_equal(world.n_ticks, 2 * N_OBJECTS + 1);
        assert_quiet(&world, &v1);
        done(&world);
}

/* The leader dies at every tick, and its successor at every tick of its own, each before and after
 * the store heard. */
static void test_each_step_is_taken_once_whatever_dies(void **state) {
        struct instance v1;
        unsigned n = 0;

        instance(&v1, "1.0.0", "abcd");
        for (unsigned first = 0; first < 2 * N_OBJECTS + 1; first++)
                for (unsigned second = 0; second < 20; second++)
                        for (unsigned heard = 0; heard < 4; heard++) {
                                struct world world = {0};
                                (void)lead(&world, &v1, first, heard & 1);
                                (void)lead(&world, &v1, second, heard & 2);
                                finish(&world, &v1);
                                assert_all_once(&world);
                                done(&world);
                                n++;
                        }
        assert_int_equal(n, 9 * 20 * 4);
}

/* ---- what users do ---- */

static void test_what_is_there_already_stays(void **state) {
        struct instance v1, v2;
        struct world world = {0};

        instance(&v1, "1.0.0", "abcd");
        instance(&v2, "2.0.0", "ebcd");
        edit(&world, 0, 'f');
        finish(&world, &v1);
        assert_int_equal(outcome(&world, 0), HF__OUTCOME_FOUND);
        finish(&world, &v2);
        assert_present(&world, 0, 'f', false);
        assert_int_equal(outcome(&world, 0), HF__OUTCOME_KEPT);
        assert_int_equal(world.objects[0].n_creates + world.objects[0].n_replaces, 0);
        done(&world);
}

/* A story of an upgrade: a stays as it is, b is edited, c deleted, d changes; the upgrader dies at
 * every tick. */
static void upgrade_with_death_at(unsigned die_at, bool heard, bool older_in_between) {
        struct instance v1, v2;
        struct world world = {0};

        instance(&v1, "1.0.0", "abcd");
        instance(&v2, "1.1.0-rc.1", "a345");
        finish(&world, &v1);
        edit(&world, 1, 'e');
        delete (&world, 2);
        assert_quiet(&world, &v1);
        (void)lead(&world, &v2, die_at, heard);
        if (older_in_between)
                finish(&world, &v1);
        finish(&world, &v2);
        assert_present(&world, 0, 'a', true);
        assert_present(&world, 1, 'e', false);
        assert_false(world.objects[2].exists);
        assert_present(&world, 3, '5', true);
        assert_int_equal(outcome(&world, 0), HF__OUTCOME_CREATED);
        assert_int_equal(outcome(&world, 1), HF__OUTCOME_KEPT);
        assert_int_equal(outcome(&world, 2), HF__OUTCOME_DELETED);
        assert_int_equal(outcome(&world, 3), HF__OUTCOME_UPDATED);
        for (unsigned i = 0; i < N_OBJECTS; i++) {
                assert_int_equal(world.objects[i].n_creates, 1);
                assert_int_equal(world.objects[i].n_replaces, i == 3);
                assert_int_equal(world.n_records[i], i == 0 ? 1 : 2);
        }
        assert_int_equal(world.n_completes, 2);
        assert_quiet(&world, &v1); /* the older one undoes nothing */
        assert_quiet(&world, &v2);
        done(&world);
}

static void test_an_upgrade_applies_what_changed_and_nobody_touched(void **state) {
        for (unsigned die_at = 0; die_at < 12; die_at++)
                for (unsigned i = 0; i < 4; i++)
                        upgrade_with_death_at(die_at, i & 1, i & 2);
}

static void test_an_edit_between_a_write_and_its_record_is_seen_as_one(void **state) {
        struct instance v1, v2, v3;
        struct world world = {0};

        instance(&v1, "1.0.0", "a");
        instance(&v2, "2.0.0", "b");
        instance(&v3, "3.0.0", "c");
        assert_false(lead(&world, &v1, 0, true)); /* created, not recorded */
        edit(&world, 0, 'e');
        finish(&world, &v1);
        assert_int_equal(outcome(&world, 0), HF__OUTCOME_CREATED);
        finish(&world, &v2);
        assert_present(&world, 0, 'e', false);
        assert_int_equal(outcome(&world, 0), HF__OUTCOME_KEPT);
        /* The same of a replacement. */
        edit(&world, 0, 'a');
        world.objects[0].present[0] =
                '0'; /* the user put it back as it was applied: it is ours again */
        assert_false(lead(&world, &v3, 1, true));
        assert_present(&world, 0, 'c', true);
        edit(&world, 0, 'f');
        finish(&world, &v3);
        assert_present(&world, 0, 'f', false);
        assert_int_equal(outcome(&world, 0), HF__OUTCOME_UPDATED);
        instance(&v1, "4.0.0", "d");
        finish(&world, &v1);
        assert_present(&world, 0, 'f', false);
        done(&world);
}

static void test_what_was_deleted_stays_deleted_and_what_was_made_again_stays_too(void **state) {
        struct instance v1, v2, v3;
        struct world world = {0};

        instance(&v1, "1.0.0", "a");
        finish(&world, instance(&v1, "1.0.0", "a"));
        delete (&world, 0);
        assert_quiet(&world, &v1);
        finish(&world, instance(&v2, "2.0.0", "b"));
        assert_false(world.objects[0].exists);
        world.objects[0].stamp[0] = '\0';
        edit(&world, 0, 'e');
        finish(&world, instance(&v3, "3.0.0", "c"));
        assert_present(&world, 0, 'e', false);
        done(&world);
}

/* ---- mixed versions ---- */

static void test_an_older_one_finds_a_phase_that_a_newer_one_completed(void **state) {
        struct instance v1, v2;
        struct world world = {0};

        finish(&world, instance(&v2, "2.0.0", "a.cd"));
        assert_quiet(&world, instance(&v1, "1.9.9", "abce"));
        assert_false(world.objects[1].exists); /* the newer one does without it, and so it stays */
        done(&world);
}

static void test_an_older_one_takes_over_in_the_middle_of_a_newer_ones_first_run(void **state) {
        struct instance v1, v2;

        for (unsigned die_at = 0; die_at < 9; die_at++)
                for (unsigned heard = 0; heard < 2; heard++) {
                        struct world world = {0};
                        instance(&v1, "1.0.0", "abcd");
                        instance(&v2, "2.0.0", "efcd");
                        (void)lead(&world, &v2, die_at, heard);
                        bool newer_completed = world.n_completes > 0;
                        finish(&world, &v1);
                        assert_int_equal(world.n_completes,
                                         1); /* a phase is complete: instances become ready */
                        finish(&world, &v2);
                        assert_quiet(&world, &v1);
                        assert_quiet(&world, &v2);
                        assert_int_equal(world.n_completes, newer_completed ? 1 : 2);
                        /* What the newer one had written but not recorded is somebody's for the
                         * older one, and stays. */
                        assert_present(&world, 0, 'e', true);
                        assert_present(&world, 1, 'f', true);
                        for (unsigned i = 0; i < N_OBJECTS; i++)
                                assert_int_equal(world.objects[i].n_creates, 1);
                        done(&world);
                }
}

static void test_equal_versions_with_other_contents_do_not_fight(void **state) {
        struct instance old, new;
        struct world world = {0};

        instance(&old, "1.0.0", "a");
        instance(&new, "1.0.0", "b");
        finish(&world, &old);
        finish(&world, &new);
        assert_present(&world, 0, 'b', true);
        for (unsigned i = 0; i < 5; i++) {
                assert_quiet(&world, &old);
                assert_quiet(&world, &new);
        }
        /* A newer version may go back to a content of before. */
        finish(&world, instance(&old, "1.0.1", "a"));
        assert_present(&world, 0, 'a', true);
        assert_quiet(&world, &new);
        done(&world);
}

static void test_history_of_contents_is_bounded(void **state) {
        struct instance one;
        struct world world = {0};
        const char *const contents[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c"};

        for (unsigned i = 0; i < 12; i++)
                finish(&world, instance(&one, "1.0.0", contents[i]));
        assert_int_equal(hf__ledger_find(&world.ledger, "a")->n_superseded, HF__SUPERSEDED_MAX);
        assert_quiet(&world, instance(&one, "1.0.0", "5"));
        assert_int_equal(world.n_completes, 1); /* the same version completes a phase once */
        done(&world);
}

static void test_steps_that_come_later_are_taken_too(void **state) {
        struct instance one;
        struct world world = {0};

        finish(&world, instance(&one, "1.0.0", "ab"));
        finish(&world, instance(&one, "1.0.0", "abcd"));
        assert_all_once(&world);
        done(&world);
}

static void test_a_completion_of_unknown_version_does_not_hold_anybody_up(void **state) {
        struct instance one;
        struct world world = {.ledger = {.n_completed = 1, .completed = {{.phase = "p"}}}};

        finish(&world, instance(&one, "1.0.0", "abcd"));
        assert_all_once(&world);
        done(&world);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_step_is_taken_once),
                cmocka_unit_test(test_each_step_is_taken_once_whatever_dies),
                cmocka_unit_test(test_what_is_there_already_stays),
                cmocka_unit_test(test_an_upgrade_applies_what_changed_and_nobody_touched),
                cmocka_unit_test(test_an_edit_between_a_write_and_its_record_is_seen_as_one),
                cmocka_unit_test(
                        test_what_was_deleted_stays_deleted_and_what_was_made_again_stays_too),
                cmocka_unit_test(test_an_older_one_finds_a_phase_that_a_newer_one_completed),
                cmocka_unit_test(
                        test_an_older_one_takes_over_in_the_middle_of_a_newer_ones_first_run),
                cmocka_unit_test(test_equal_versions_with_other_contents_do_not_fight),
                cmocka_unit_test(test_history_of_contents_is_bounded),
                cmocka_unit_test(test_steps_that_come_later_are_taken_too),
                cmocka_unit_test(test_a_completion_of_unknown_version_does_not_hold_anybody_up),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
