/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the default class of a new claim or Ingress. There are few classes, and only a create that
 * names none looks at them. It first waits until the cache has every write that was acknowledged
 * before, so that a default which the same client has just created is known on every instance. If
 * the cache stays behind, the classes that it has are good enough: Kubernetes does not wait at all.
 *
 * Invariant: as in Kubernetes, of several defaults the newest one counts, and of equally old ones
 * the first by name. An empty class is a class: it means that the object wants none.
 */
#include "server/registry/write/checks/default_class.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/cacher/history/object_tree.h"
#include "server/cacher/watch/snapshot.h"
#include "server/registry/write/checks/priority_default.h"
#include "server/registry/write/reply.h"
#include "server/resources/rows/resource_table.h"

/* A kind whose objects get a class. */
struct classed {
        const char *group, *plural;
        const char *member;     /* of the spec: the name of the class */
        const char *annotation; /* an older way to name it */
        const char *class_group, *class_plural;
        const char *marks[2]; /* annotations of the default */
};

static const struct classed kinds[] = {
        {"",
         "persistentvolumeclaims",
         "storageClassName",
         "volume.beta.kubernetes.io/storage-class",
         "storage.k8s.io",
         "storageclasses",
         {"storageclass.kubernetes.io/is-default-class",
          "storageclass.beta.kubernetes.io/is-default-class"}},
        {"networking.k8s.io",
         "ingresses",
         "ingressClassName",
         "kubernetes.io/ingress.class",
         "networking.k8s.io",
         "ingressclasses",
         {"ingressclass.kubernetes.io/is-default-class", NULL}},
};

/* NULL: objects of the kind have no class. */
static const struct classed *find_kind(const struct hfd_resource *resource) {
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
                if (strcmp(kinds[i].plural, resource->plural) == 0 &&
                    strcmp(kinds[i].group, resource->group) == 0)
                        return &kinds[i];
        return NULL;
}

static bool names_class(const struct hf__json *object, const struct classed *kind) {
        const struct hf__json *annotations = hf__json_path(object, "metadata.annotations");

        return hf__json_get(hf__json_get(object, "spec"), kind->member) ||
               hf__json_get(annotations, kind->annotation);
}

/* The newest default so far. */
struct found {
        char name[HF_NAME_MAX + 1]; /* "" = none */
        char created[40];
};

static bool is_marked(const struct hf__json *class, const struct classed *kind) {
        const struct hf__json *annotations = hf__json_path(class, "metadata.annotations");

        for (size_t i = 0; i < 2 && kind->marks[i]; i++) {
                const struct hf__json *mark = hf__json_get(annotations, kind->marks[i]);
                if (hf__json_is_string(mark) && strcmp(hf__json_text(mark), "true") == 0)
                        return true;
        }
        return false;
}

/* Makes the class the newest default so far, if it is one. 0 or -ENOMEM. */
static int consider_class(const struct hfd_object *object, const struct classed *kind,
                          struct found *found) {
        static const char word[] = "is-default-class";

        /* Most classes do not contain the word, and need no parsing. The bytes of these kinds are
         * never compressed (is_packed in resource.h). */
        if (!memmem(object->bytes->data, object->bytes->n, word, sizeof word - 1))
                return 0;
        struct hf__json *json = hfd_object_parse(object);
        if (!json)
                return -ENOMEM;
        const char *created = hf__json_string(json, "metadata.creationTimestamp");
        created = created ? created : "";
        if (is_marked(json, kind) && (!*found->name || strcmp(created, found->created) > 0)) {
                (void)snprintf(found->name, sizeof found->name, "%s", hfd_object_name(object));
                (void)snprintf(found->created, sizeof found->created, "%s", created);
        }
        hf__json_free(json);
        return 0;
}

/* The classes come in the order of their names. 0 or -ENOMEM. */
static int find_default(struct hfd_write *w, const struct classed *kind, struct found *found) {
        const struct hfd_scope all = {0};
        const struct hfd_resource *classes =
                hfd_resource_find(kind->class_group, "v1", kind->class_plural);
        struct hfd_snapshot snapshot;
        struct hfd_object_iter iter;
        struct hfd_object *object;
        int r = 0;

        *found = (struct found){0};
        if (!hfd_snapshot_take(w->registry->cacher, classes, 0, &snapshot))
                return 0; /* the cache is not filled yet: nothing is known */
        hfd_object_iter_init(&iter, &snapshot.objects, &all, "");
        while (r == 0 && (object = hfd_object_iter_next(&iter)) != NULL)
                r = consider_class(object, kind, found);
        hfd_snapshot_done(&snapshot);
        return r;
}

bool hfd_write_class_assign(struct hfd_write *w) {
        const struct classed *kind = find_kind(w->request->resource);
        struct found found;
        int r;

        if (!kind || !w->created || w->request->subresource != HFD_SUB_NONE ||
            names_class(w->object, kind))
                return true;
        if (!w->knows_classes) {
                hfd_write_await_classes(w, true);
                return false;
        }
        r = find_default(w, kind, &found);
        if (r == 0 && *found.name)
                r = hf__json_put_string(hf__json_get(w->object, "spec"), kind->member, found.name);
        if (r != 0)
                hfd_write_reply_no_memory(w);
        return r == 0;
}
