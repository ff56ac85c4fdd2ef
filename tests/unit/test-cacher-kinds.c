/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a replaced custom kind. Its last object may be dropped while an event is applied. It
 * frees the kind with all its schemas, which takes long, so the cacher's lock must be free by then.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/json.h"
#include "gadget_definition.h"
#include "scripted_cacher.h"
#include "server/cacher/state/cacher_state.h"
#include "server/cacher/sync/slot_forms.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/objects/stored_object.h"

#define SEALED                                                                                     \
        "k8s:enc:aesgcm:v1:key1:x" /* the store would say that it has encrypted the value          \
                                    */
#define FIRST  DEFINITION(VERSION("v1", "true", "first"))
#define SECOND DEFINITION(VERSION("v1", "true", "second"))
#define TEXT                                                                                       \
        "{\"kind\":\"Gadget\",\"apiVersion\":\"example.com/v1\",\"metadata\":{\"name\":\"a\","     \
        "\"namespace\":\"default\"}}"

/* ---- the linker redirects these functions here ---- */

static pthread_mutex_t *_Atomic lock_of_cacher;
static _Thread_local int n_held; /* how often this thread has locked it */
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex) {
        n_held += mutex == atomic_load(&lock_of_cacher);
        return __real_pthread_mutex_lock(mutex);
}

int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex) {
        n_held -= mutex == atomic_load(&lock_of_cacher);
        return __real_pthread_mutex_unlock(mutex);
}

static int n_freed; /* schemas */
struct hfd_custom_schema *__real_hfd_custom_schema_free(struct hfd_custom_schema *schema);
struct hfd_custom_schema *__wrap_hfd_custom_schema_free(struct hfd_custom_schema *schema);
struct hfd_custom_schema *__wrap_hfd_custom_schema_free(struct hfd_custom_schema *schema) {
        assert_int_equal(n_held, 0);
        n_freed += schema != NULL;
        return __real_hfd_custom_schema_free(schema);
}

static void (*between)(void); /* called after the next object was made, before it is applied */
struct hfd_object *__real_hfd_stored_object_new(const struct hfd_resource *resource,
                                                const char *path, const struct hfd_kv *kv);
struct hfd_object *__wrap_hfd_stored_object_new(const struct hfd_resource *resource,
                                                const char *path, const struct hfd_kv *kv);
struct hfd_object *__wrap_hfd_stored_object_new(const struct hfd_resource *resource,
                                                const char *path, const struct hfd_kv *kv) {
        struct hfd_object *object = __real_hfd_stored_object_new(resource, path, kv);
        void (*call)(void) = between;

        between = NULL;
        if (call)
                call();
        return object;
}

/* ---- kinds ---- */

static const struct hfd_resource *slot;
static struct hfd_custom_kind *first, *second;

static struct hfd_custom_kind *kind_of(const char *text) {
        struct hfd_custom_kind *kind;
        struct hf__json *json;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        assert_int_equal(hfd_custom_kind_new(json, NULL, slot, 1, &kind), 0);
        hf__json_free(json);
        return kind;
}

static int set_up(void **state) {
        (void)scripted_cacher_set_up(state);
        assert_int_equal(hfd_custom_table_slot(scripted.table, "example.com", "gadgets", &slot), 0);
        scripted_cacher_fill();
        first = kind_of(FIRST);
        second = kind_of(SECOND);
        n_freed = 0;
        atomic_store(&lock_of_cacher, &scripted.cacher->mu);
        return 0;
}

static int tear_down(void **state) {
        hfd_slot_form_clear(scripted.cacher, slot);
        hfd_custom_kind_unref(first);
        hfd_custom_kind_unref(second);
        return scripted_cacher_tear_down(state);
}

static void put_gadget(uint64_t revision) {
        scripted_store_event(&scripted.store, GADGET "a", TEXT, revision);
}

static void drop_first(void) {
        first = hfd_custom_kind_unref(first);
        assert_int_equal(n_freed, 0); /* an object still has it */
}

/* ---- the cases ---- */

/* A write of this instance has stored a version, and the watch delivers it. */
static void test_a_version_that_only_writes_have_used(void **state) {
        struct hf__buf *bytes = hf__buf_copy(TEXT, strlen(TEXT));

        put_gadget(11);
        struct hfd_object *object = hfd_object_new(&first->storage->row, "default/a", 12, bytes);
        assert_non_null(object);
        hfd_cacher_record_write(scripted.cacher, object);
        hfd_object_unref(object);
        hf__buf_unref(bytes);
        drop_first();
        put_gadget(12);
        assert_int_equal(n_freed, 1);
}

static void replace_form(void) {
        assert_int_equal(hfd_slot_form_set(scripted.cacher, &second->storage->row), 0);
        drop_first();
}

/* The form of the slot changes after the object was made, and before it is applied. */
static void test_an_object_that_is_made_anew(void **state) {
        assert_int_equal(hfd_slot_form_set(scripted.cacher, &first->storage->row), 0);
        between = replace_form;
        put_gadget(11);
        assert_null(between);
        assert_int_equal(n_freed, 1);
        struct hfd_object *object = hfd_cacher_get(scripted.cacher, slot, "default/a");
        assert_non_null(object);
        assert_ptr_equal(object->resource, &second->storage->row);
        hfd_object_unref(object);
}

/* Its next value cannot be decrypted. */
static void test_an_object_that_is_sealed(void **state) {
        put_gadget(11);
        assert_int_equal(hfd_slot_form_set(scripted.cacher, &first->storage->row), 0);
        hfd_slot_form_clear(scripted.cacher, slot);
        drop_first();
        scripted_store_event(&scripted.store, GADGET "a", SEALED, 12);
        assert_int_equal(n_freed, 1);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                CASE(test_a_version_that_only_writes_have_used),
                CASE(test_an_object_that_is_made_anew),
                CASE(test_an_object_that_is_sealed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
