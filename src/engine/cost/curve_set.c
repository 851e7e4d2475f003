/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of known curves: a list in memory, a JSON file that is merged with on saving. One thread. Usual size: 50 classes
 * a network, hundreds in all; looked up once per class when a plan is measured. */
#include "engine/cost/curve_set.h"

#include "base/array.h"
#include "base/file.h"
#include "base/index.h"
#include "base/status.h"
#include "base/text.h"
#include "engine/cost/climb.h"
#include "engine/cost/cost.h"
#include "engine/cost/curve_json.h"
#include "machine/machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char schema[] = "graphi-curves/1";
enum { MOST_CURVES = 4000 }; /* in a file; of more those go that came first. Bounds what a hostile file can cost */

struct entry {
    uint64_t key;
    bool added;     /* since opening: not in the file */
    bool disturbed; /* by others while it was measured: for who reads the file; here it would be no better again */
    struct cost_curve curve;
};

typedef struct {
    ARRAY(struct entry);
    struct index places; /* by entry_hash */
} entry_list;

struct graphi_curves {
    const graphi_machine *machine;
    char *path; /* NULL: in memory only */
    entry_list entries;
};

/* --- the list --- */

static uint64_t entry_hash(uint64_t key, const char *model) { return hash_string(hash_u64(HASH_START, key), model); }

static struct entry *find(const entry_list *list, uint64_t key, const char *model)
{
    const uint64_t hash = entry_hash(key, model);
    size_t seen = 0;
    for (int32_t i; (i = index_next(&list->places, hash, &seen)) >= 0;)
        if (list->data[i].key == key && strcmp(list->data[i].curve.model, model) == 0)
            return &list->data[i];
    return NULL;
}

static graphi_status put(entry_list *list, const struct entry *entry)
{
    struct entry *before = find(list, entry->key, entry->curve.model);
    if (before)
        *before = *entry;
    else if (!array_reserve(list, list->count + 1) ||
             !index_add(&list->places, entry_hash(entry->key, entry->curve.model), (int32_t)list->count))
        return fail_memory("curves", sizeof *entry);
    else
        list->data[list->count++] = *entry;
    return GRAPHI_OK;
}

static void list_free(entry_list *list)
{
    array_free(list);
    index_free(&list->places);
}

int64_t curve_set_count(const graphi_curves *known) { return (int64_t)known->entries.count; }

/* --- the file --- */

static graphi_status read_entries(const struct json_file *r, entry_list *list)
{
    json_t *curves = json_object_get(r->root, "curves"), *object;
    size_t i;
    if (!json_is_array(curves) || json_array_size(curves) > MOST_CURVES)
        return json_file_wrong(r, "curves", curves, "a list of at most 4000");
    json_array_foreach(curves, i, object)
    {
        const struct json_file at = {.path = r->path, .root = r->root, .list = "curves", .index = i};
        struct entry entry = {0};
        TRY(curve_read(&at, object, &entry.key, &entry.curve));
        if (entry.curve.source != GRAPHI_CURVE_MEASURED && entry.curve.source != GRAPHI_CURVE_PREDICTED)
            return json_file_wrong(&at, "source", json_object_get(object, "source"), "measured or predicted");
        TRY(put(list, &entry));
    }
    return GRAPHI_OK;
}

/* What the file holds; nothing where there is none. */
static graphi_status read_file(const char *path, const graphi_machine *machine, entry_list *list)
{
    struct json_file r;
    if (!file_exists(path))
        return GRAPHI_OK;
    TRY(json_file_open(path, &r));
    graphi_status status = json_file_expect(&r, "schema", schema);
    if (!status)
        status = json_file_expect(&r, "version", graphi_version());
    if (!status)
        status = json_file_expect_hash(&r, "machine", machine_hash(machine));
    if (!status)
        status = read_entries(&r, list);
    json_file_close(&r);
    return status;
}

static graphi_status write_file(const char *path, const graphi_machine *machine, const entry_list *list)
{
    struct text text = {0};
    size_t first = list->count > MOST_CURVES ? list->count - MOST_CURVES : 0;
    text_add(&text,
             "{\n  \"schema\": \"%s\",\n  \"version\": \"%s\",\n  \"machine\": \"%016" PRIx64 "\",\n  \"curves\": [",
             schema, graphi_version(), machine_hash(machine));
    for (size_t i = first; i < list->count; i++) {
        text_add(&text, i > first ? ",\n    " : "\n    ");
        struct cost_curve curve = list->data[i].curve;
        curve.disturbed |= list->data[i].disturbed;
        curve_write(&text, list->data[i].key, &curve);
    }
    text_add(&text, "\n  ]\n}\n");
    graphi_status status = text.broken ? fail_memory("curves", text.count) : file_replace(path, text.data, text.count);
    text_free(&text);
    return status;
}

/* What was disturbed does not take the place of what was not. */
static bool is_worse(const struct entry *entry, const entry_list *list)
{
    const struct entry *there = find(list, entry->key, entry->curve.model);
    return entry->disturbed && there && !there->curve.disturbed && there->curve.interval == entry->curve.interval;
}

static graphi_status merge(const graphi_curves *curves)
{
    entry_list all = {0};
    graphi_status status = read_file(curves->path, curves->machine, &all);
    for (size_t i = 0; i < curves->entries.count && !status; i++)
        if (curves->entries.data[i].added && !is_worse(&curves->entries.data[i], &all))
            status = put(&all, &curves->entries.data[i]);
    if (!status)
        status = write_file(curves->path, curves->machine, &all);
    list_free(&all);
    return status;
}

graphi_status graphi_curves_save(graphi_curves *curves)
{
    GIVEN(curves);
    bool any = false;
    struct file_lock lock;
    for (size_t i = 0; i < curves->entries.count; i++)
        any = any || curves->entries.data[i].added;
    if (!any || !curves->path)
        return GRAPHI_OK;
    TRY(file_lock(curves->path, &lock));
    graphi_status status = merge(curves);
    file_unlock(&lock);
    for (size_t i = 0; i < curves->entries.count && !status; i++)
        curves->entries.data[i].added = false;
    return status;
}

graphi_status graphi_curves_open(const graphi_machine *machine, const char *path, graphi_curves **out)
{
    GIVEN(machine);
    GIVEN(out);
    size_t size = path ? strlen(path) + 1 : 0;
    graphi_curves *curves = mem_zalloc(sizeof *curves);
    char *copy = path ? mem_alloc(size) : NULL;
    graphi_status status = curves && (copy || !path) ? GRAPHI_OK : fail_memory("curves", sizeof *curves + size);
    if (!status) {
        *curves = (graphi_curves){.machine = machine, .path = copy};
        if (path) {
            memcpy(copy, path, size);
            status = read_file(path, machine, &curves->entries);
        }
    }
    if (!status)
        *out = curves;
    else if (curves && curves->path)
        graphi_curves_close(curves);
    else {
        mem_free(copy);
        mem_free(curves);
    }
    return status;
}

/* Under the lock. */
static graphi_status open_or_empty(const graphi_machine *machine, const char *path, graphi_curves **out)
{
    const entry_list none = {0};
    graphi_status status = graphi_curves_open(machine, path, out);
    if (status != GRAPHI_INVALID && status != GRAPHI_REFUSED)
        return status;
    TRY(write_file(path, machine, &none));
    return graphi_curves_open(machine, path, out);
}

graphi_status graphi_curves_renew(const graphi_machine *machine, const char *path, graphi_curves **out)
{
    GIVEN(machine);
    GIVEN(out);
    struct file_lock lock;
    TRY(file_lock(path, &lock));
    graphi_status status = open_or_empty(machine, path, out);
    file_unlock(&lock);
    return status;
}

void graphi_curves_close(graphi_curves *curves)
{
    if (!curves)
        return;
    list_free(&curves->entries);
    mem_free(curves->path);
    mem_free(curves);
}

/* --- measured ones --- */

graphi_status curve_set_fits(const graphi_curves *known, const graphi_machine *machine)
{
    if (!known || machine_hash(known->machine) == machine_hash(machine))
        return GRAPHI_OK;
    return fail(GRAPHI_REFUSED, known->path ? known->path : "curves",
                "found curves of machine %s, expected those of %s", known->machine->name, machine->name);
}

int32_t curve_set_take(const graphi_curves *known, struct class_keys classes, int interval, struct cost_curve *curves)
{
    int32_t taken = 0;
    for (int32_t k = 0; known && k < classes.count; k++) {
        const struct entry *entry = find(&known->entries, class_key_at(classes, k), "");
        if (!entry || (entry->curve.interval && entry->curve.interval != interval))
            continue;
        curves[k] = entry->curve;
        curves[k].source = GRAPHI_CURVE_STORED;
        taken += !curves[k].disturbed;
    }
    return taken;
}

graphi_status curve_set_learn(graphi_curves *known, struct class_keys classes, const struct cost_curve *curves,
                              bool disturbed)
{
    for (int32_t k = 0; k < classes.count; k++)
        if (curves[k].source == GRAPHI_CURVE_MEASURED)
            TRY(put(&known->entries, &(struct entry){class_key_at(classes, k), true, disturbed, curves[k]}));
    return GRAPHI_OK;
}

/* --- predicted ones --- */

/* The samples as a climb would have taken them. False: they are none. */
static bool climbed(const graphi_climb *samples, struct climb *climb)
{
    const double *const ns[] = {samples->compact_ns, samples->spread_ns};
    if (samples->samples < 1 || samples->samples > GRAPHI_CLIMB_SAMPLES || samples->width[0] != 1 ||
        samples->compact_ns[0] == 0)
        return false;
    for (int i = 0; i < samples->samples; i++) {
        if (samples->width[i] > 65536 || (i && samples->width[i] <= samples->width[i - 1]))
            return false;
        for (int spread = 0; spread < 2; spread++) {
            struct climb_mode *mode = &climb->mode[spread];
            if (ns[spread][i] != 0 && !(ns[spread][i] >= LEAST_NS && ns[spread][i] <= MOST_NS))
                return false;
            mode->width[mode->samples] = samples->width[i];
            mode->ns[mode->samples] = ns[spread][i];
            mode->samples += ns[spread][i] > 0;
        }
    }
    return true;
}

graphi_status graphi_curves_add(graphi_curves *curves, uint64_t class_key, const char *model,
                                const graphi_climb *samples)
{
    GIVEN(curves);
    GIVEN(model);
    GIVEN(samples);
    struct entry entry = {.key = class_key, .added = true};
    struct climb climb = {0};
    bool printable = *model;
    for (const char *at = model; *at; at++)
        printable = printable && *at >= ' ' && *at <= '~';
    if (!printable || strlen(model) >= sizeof entry.curve.model)
        return fail(GRAPHI_INVALID, "curves",
                    "found the model '%.40s', expected a name of 1 to 31 printable characters of ASCII", model);
    if (!climbed(samples, &climb))
        return fail(GRAPHI_INVALID, model,
                    "found samples that are no curve, expected times from 1 ns on at widths ascending from 1");
    climb_curve(&climb, &entry.curve);
    entry.curve.source = GRAPHI_CURVE_PREDICTED;
    snprintf(entry.curve.model, sizeof entry.curve.model, "%s", model);
    return put(&curves->entries, &entry);
}

static graphi_status check_model(const graphi_curves *curves, const char *model)
{
    char names[160] = "";
    for (size_t i = 0; i < curves->entries.count; i++) {
        const char *name = curves->entries.data[i].curve.model;
        size_t used = strlen(names);
        if (strcmp(name, model) == 0)
            return GRAPHI_OK;
        if (*name && !strstr(names, name))
            snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", name);
    }
    return fail(GRAPHI_INVALID, curves->path ? curves->path : "curves",
                "found no curve by '%.40s', expected a model that has some: %s", model,
                *names ? names : "there is none");
}

graphi_status curve_set_check(const graphi_curves *known, const graphi_machine *machine, const char *model)
{
    TRY(curve_set_fits(known, machine));
    return model ? check_model(known, model) : GRAPHI_OK;
}

const char *curve_set_name(const graphi_curves *known) { return known->path ? known->path : "memory"; }

bool curve_set_replace(const graphi_curves *known, uint64_t key, const char *model, struct cost_curve *curve)
{
    const struct entry *entry = find(&known->entries, key, model ? model : "");
    if (!entry)
        return false;
    struct cost_curve before = *curve;
    *curve = entry->curve;
    if (!model)
        curve->source = GRAPHI_CURVE_STORED;
    else { /* models predict operations alone */
        curve->beside = before.beside;
        curve->in_order = before.in_order;
        memcpy(curve->moved, before.moved, sizeof curve->moved);
    }
    return true;
}

bool curve_set_is_sound(const graphi_curves *known, uint64_t key)
{
    const struct entry *entry = find(&known->entries, key, "");
    return entry && !entry->disturbed && !entry->curve.disturbed;
}
