/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An index of a JSON document that a JSON patch changes. The operations of a patch may search the
 * same large objects and arrays again and again. So a large container gets a tree (item_tree.h) at
 * the first search in it. From then on a search in it takes logarithmic time, even after changes.
 *
 * While the index exists, the document's containers may be changed only by the functions below.
 * Thread: owner only.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;
struct hfd_document_tree;
struct hfd_patch_outcome;

struct hfd_document_index {
        struct hfd_patch_outcome *outcome; /* borrowed; counts the steps of the searches */
        struct hfd_document_tree *trees;   /* owned; a hash table by container */
        /* n_trees: slots in use, also those of removed entries. n_slots: all slots, 0 or a power of
         * two. */
        size_t n_trees, n_slots;
};

/* Where a member is in its container, or would be. Valid until the next search or change. */
struct hfd_document_place {
        struct hf__json *member;        /* NULL = there is none */
        struct hfd_document_tree *tree; /* of the container; NULL = it is small */
        size_t place;                   /* in the tree, or in an array without a tree */
};

void hfd_document_index_init(struct hfd_document_index *index, struct hfd_patch_outcome *outcome);
void hfd_document_index_done(struct hfd_document_index *index);

/*
 * Find the element of an array (by its number), or the member of an object (by its key). A number
 * beyond the end finds the end. 0, -ENOMEM, or HF_E_TOO_LARGE: the patch has used too many steps.
 */
int hfd_document_index_at(struct hfd_document_index *index, struct hf__json *array, size_t number,
                          struct hfd_document_place *ret_place);
int hfd_document_index_get(struct hfd_document_index *index, struct hf__json *object,
                           const char *key, struct hfd_document_place *ret_place);

/*
 * The functions below change the container in which one of the functions above has found the place.
 * insert puts value before the element of an array that was found, or at the array's end; or adds
 * it to an object as the member `key`, which the object must not have. replace frees the member
 * that was found. Both take ownership of value, even on failure. 0, -ENOMEM or HF_E_TOO_LARGE.
 */
int hfd_document_index_insert(struct hfd_document_index *index, struct hf__json *container,
                              struct hfd_document_place *place, const char *key,
                              struct hf__json *value);
int hfd_document_index_replace(struct hfd_document_index *index, struct hf__json *container,
                               struct hfd_document_place *place, struct hf__json *value);
/* Removes the member, and returns it to the caller, who owns it. Its trees stay valid, so it may be
 * inserted again elsewhere. */
struct hf__json *hfd_document_index_detach(struct hfd_document_index *index,
                                           struct hf__json *container,
                                           struct hfd_document_place *place);
/* Frees a value that was part of the document. Accepts NULL. */
void hfd_document_index_free(struct hfd_document_index *index, struct hf__json *value);
