/* SPDX-License-Identifier: Apache-2.0 */
/* Machine descriptions: small JSON files (100 bytes to 10 KB), written by people or from the machine at hand. Every key
 * is in the table below with its type and range; a key that is not there is refused, so that a misspelt one is found.
 * Cores are given in order as groups of equal tiles:
 *
 *   "groups": [{"numa": 0, "tiles": 17, "cores": 2}, {"numa": 1, "tiles": 17, "cores": 2}] */
#include "machine/machine.h"

#include "base/file.h"
#include "base/isa.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

enum type { TEXT, BYTES, NUMBER, WIDTH, SWITCH, FACTOR };
struct key {
    const char *name;
    enum type type;
    bool required;
    size_t offset;
    double low, high; /* of numbers; TEXT: the size of the field in `high` */
};
/* The least that is not 0. NUMBER: a rate below would make durations infinite. WIDTH: fewer threads than one would make
 * an operation slower than it is alone. FACTOR: of a slowdown. */
static const double least[] = {[NUMBER] = 1e-6, [WIDTH] = 1, [SWITCH] = 1, [FACTOR] = 1};

#define FIELD(field) offsetof(struct graphi_machine, field)
static const struct key keys[] = {
    {"name", TEXT, true, FIELD(name), 0, sizeof((struct graphi_machine *)0)->name},
    {"cpu", TEXT, false, FIELD(cpu), 0, sizeof((struct graphi_machine *)0)->cpu},
    {"isa", TEXT, true, FIELD(isa), 0, sizeof((struct graphi_machine *)0)->isa},
    {"quota", NUMBER, false, FIELD(quota), 0, 1e6},
    {"l1_bytes", BYTES, false, FIELD(l1_bytes), 0, 1e15},
    {"l2_bytes", BYTES, false, FIELD(l2_bytes), 0, 1e15},
    {"l3_bytes", BYTES, false, FIELD(l3_bytes), 0, 1e15},
    {"core_gflops", NUMBER, false, FIELD(core_gflops), 0, 1e9},
    {"roof_gflops", NUMBER, false, FIELD(roof_gflops), 0, 1e12},
    {"roof_bf16_gflops", NUMBER, false, FIELD(roof_bf16_gflops), 0, 1e12},
    {"core_bandwidth_gbs", NUMBER, false, FIELD(core_bandwidth_gbs), 0, 1e9},
    {"bandwidth_gbs", NUMBER, false, FIELD(bandwidth_gbs), 0, 1e9},
    {"l2_bandwidth_gbs", NUMBER, false, FIELD(l2_bandwidth_gbs), 0, 1e9},
    {"l3_bandwidth_gbs", NUMBER, false, FIELD(l3_bandwidth_gbs), 0, 1e9},
    {"wake_ns", NUMBER, false, FIELD(wake_ns), 0, 1e12},
    {"barrier_ns", NUMBER, false, FIELD(barrier_ns), 0, 1e12},
    {"lock_ns", NUMBER, false, FIELD(lock_ns), 0, 1e12},
    {"atomic_ns", NUMBER, false, FIELD(atomic_ns), 0, 1e12},
    {"schedule_ns", NUMBER, false, FIELD(schedule_ns), 0, 1e12},
    {"entry_ns", NUMBER, false, FIELD(entry_ns), 0, 1e12},
    {"even_split", SWITCH, false, FIELD(even_split), 0, 1},
    {"gemm_saturation", WIDTH, false, FIELD(gemm_saturation), 0, MACHINE_MAX_THREADS},
    {"elementwise_saturation", WIDTH, false, FIELD(elementwise_saturation), 0, MACHINE_MAX_THREADS},
    {"unpinned_slowdown", FACTOR, false, FIELD(unpinned_slowdown), 0, 1000},
};
enum { KEYS = sizeof keys / sizeof *keys };
/* Beside these: "schema", "notes" (free text, kept by nobody), "groups", "sibling_of". */
static const char schema[] = "graphi-machine/1";

/* --- reading --- */

static graphi_status wrong(const char *path, const char *key, const json_t *value, const char *expected)
{
    char where[512], text[96];
    snprintf(where, sizeof where, "%s: key \"%s\"", path, key);
    return fail(GRAPHI_INVALID, where, "found %s, expected %s", json_found(value, text, sizeof text), expected);
}

static graphi_status wrong_number(const char *path, const char *key, const json_t *value, const char *what, double low,
                                  double high)
{
    char expected[96];
    snprintf(expected, sizeof expected, "%s from %.15g to %.15g", what, low, high);
    return wrong(path, key, value, expected);
}

static graphi_status read_integer(const char *path, const char *key, const json_t *value, int64_t low, int64_t high,
                                  int64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < low || json_integer_value(value) > high)
        return wrong_number(path, key, value, "an integer", (double)low, (double)high);
    *out = json_integer_value(value);
    return GRAPHI_OK;
}

static graphi_status read_text(const char *path, const struct key *key, const json_t *value, char *field)
{
    char expected[64];
    size_t size = (size_t)key->high;
    snprintf(expected, sizeof expected, "a text of 1 to %zu bytes in one line", size - 1);
    if (!json_is_string(value) || !json_string_length(value) || json_string_length(value) >= size)
        return wrong(path, key->name, value, expected);
    for (const char *at = json_string_value(value); *at; at += utf8_bytes(at)) /* it is printed */
        if (utf8_control(at))
            return wrong(path, key->name, value, expected);
    snprintf(field, size, "%s", json_string_value(value));
    return GRAPHI_OK;
}

static graphi_status read_key(const char *path, const struct key *key, const json_t *value, graphi_machine *machine)
{
    char *field = (char *)machine + key->offset;
    if (!value)
        return key->required ? wrong(path, key->name, value, "one") : GRAPHI_OK;
    if (key->type == TEXT)
        return read_text(path, key, value, field);
    if (key->type == BYTES)
        return read_integer(path, key->name, value, (int64_t)key->low, (int64_t)key->high, (int64_t *)field);
    double number = json_number_value(value); /* the comparison is written so that a NaN fails too */
    if (!json_is_number(value) || !(number >= key->low && number <= key->high))
        return wrong_number(path, key->name, value, "a number", key->low, key->high);
    if (number > 0 && number < least[key->type])
        return wrong_number(path, key->name, value, "0 or a number", least[key->type], key->high);
    *(double *)field = number;
    return GRAPHI_OK;
}

static graphi_status refuse_unknown(const char *path, json_t *object, const char *const *extra, bool table)
{
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        bool known = false;
        for (const char *const *at = extra; *at; at++)
            known = known || strcmp(name, *at) == 0;
        for (int i = 0; table && i < KEYS; i++)
            known = known || strcmp(name, keys[i].name) == 0;
        if (!known)
            return wrong(path, name, value, "no such key");
    }
    return GRAPHI_OK;
}

struct group {
    int64_t numa, tiles, cores;
};

static graphi_status read_group(const char *path, json_t *value, struct group *group)
{
    static const char *const known[] = {"numa", "tiles", "cores", NULL};
    if (!json_is_object(value))
        return wrong(path, "groups", value, "objects {\"numa\", \"tiles\", \"cores\"} in the list");
    TRY(refuse_unknown(path, value, known, false));
    TRY(read_integer(path, "groups.numa", json_object_get(value, "numa"), 0, 1023, &group->numa));
    TRY(read_integer(path, "groups.tiles", json_object_get(value, "tiles"), 1, MACHINE_MAX_CORES, &group->tiles));
    return read_integer(path, "groups.cores", json_object_get(value, "cores"), 1, MACHINE_MAX_CORES, &group->cores);
}

static graphi_status count_cores(const char *path, json_t *groups, int64_t *cores)
{
    *cores = 0;
    if (!json_is_array(groups) || json_array_size(groups) == 0)
        return wrong(path, "groups", groups, "a list of {\"numa\", \"tiles\", \"cores\"}");
    for (size_t i = 0; i < json_array_size(groups); i++) {
        struct group group;
        TRY(read_group(path, json_array_get(groups, i), &group));
        *cores += group.tiles * group.cores;
        if (*cores > MACHINE_MAX_CORES)
            return fail(GRAPHI_INVALID, path, "found %lld cores or more in \"groups\", expected at most %d",
                        (long long)*cores, MACHINE_MAX_CORES);
    }
    return GRAPHI_OK;
}

static graphi_status fill_cores(const char *path, json_t *groups, graphi_machine *machine)
{
    for (size_t i = 0; i < json_array_size(groups); i++) {
        struct group group;
        TRY(read_group(path, json_array_get(groups, i), &group));
        if (group.numa > machine->numa_nodes || (i == 0 && group.numa))
            return wrong_number(path, "groups.numa", json_object_get(json_array_get(groups, i), "numa"),
                                "nodes numbered in order,", 0, machine->numa_nodes);
        machine->numa_nodes += group.numa == machine->numa_nodes;
        for (int64_t tile = 0; tile < group.tiles; tile++, machine->tiles++)
            for (int64_t core = 0; core < group.cores; core++)
                machine->core[machine->cores++] = (struct machine_core){-1, machine->tiles, (int)group.numa, -1};
    }
    return GRAPHI_OK;
}

static graphi_status fill_siblings(const char *path, json_t *list, graphi_machine *machine)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        int64_t of = 0;
        TRY(read_integer(path, "sibling_of", json_array_get(list, i), 0, machine->cores - 1, &of));
        const struct machine_core *core = &machine->core[of];
        machine->core[machine->cores + machine->siblings++] =
            (struct machine_core){-1, core->tile, core->numa, (int)of};
    }
    return GRAPHI_OK;
}

static graphi_status read_cores(const char *path, json_t *root, graphi_machine *machine)
{
    json_t *groups = json_object_get(root, "groups"), *siblings = json_object_get(root, "sibling_of");
    int64_t cores;
    TRY(count_cores(path, groups, &cores));
    if (siblings && (!json_is_array(siblings) || json_array_size(siblings) > MACHINE_MAX_THREADS))
        return wrong(path, "sibling_of", siblings, "a list of core indices, one for each sibling thread");
    size_t all = (size_t)cores + json_array_size(siblings);
    machine->core = mem_zalloc_array(all, sizeof *machine->core);
    if (!machine->core)
        return fail_memory(path, all * sizeof *machine->core);
    TRY(fill_cores(path, groups, machine));
    return fill_siblings(path, siblings, machine);
}

static graphi_status read_machine(const char *path, json_t *root, graphi_machine *machine)
{
    static const char *const known[] = {"schema", "notes", "groups", "sibling_of", NULL};
    json_t *version = json_object_get(root, "schema");
    enum isa isa;
    if (!json_is_object(root))
        return fail(GRAPHI_INVALID, path, "found no object, expected {\"schema\": \"%s\", ...}", schema);
    if (!json_is_string(version) || strcmp(json_string_value(version), schema))
        return wrong(path, "schema", version, "\"graphi-machine/1\"");
    TRY(refuse_unknown(path, root, known, true));
    machine->unpinned_slowdown = 1;
    for (int i = 0; i < KEYS; i++)
        TRY(read_key(path, &keys[i], json_object_get(root, keys[i].name), machine));
    if (!isa_parse(machine->isa, &isa))
        return wrong(path, "isa", json_object_get(root, "isa"), "plain, avx2, avx512 or bf16");
    TRY(read_cores(path, root, machine));
    if (machine->roof_gflops <= 0)
        machine->roof_gflops = machine->core_gflops * machine->cores;
    if (!machine->cpu[0])
        snprintf(machine->cpu, sizeof machine->cpu, "described");
    return GRAPHI_OK;
}

/* --- its first cores --- */

/* Siblings of cores that stay move up behind them. */
static void keep_siblings(graphi_machine *machine, int cores)
{
    int kept = 0;
    for (int i = 0; i < machine->siblings; i++) {
        struct machine_core sibling = machine->core[machine->cores + i];
        if (sibling.sibling_of < cores)
            machine->core[cores + kept++] = sibling;
    }
    machine->siblings = kept;
}

/* Leaves it its first `cores` cores; 0: all. */
static graphi_status limit(graphi_machine *machine, int cores)
{
    if (cores == 0)
        return GRAPHI_OK;
    if (cores < 0 || cores > machine->cores)
        return fail(GRAPHI_INVALID, machine->name, "found %d cores asked for, expected 1 to %d", cores, machine->cores);
    keep_siblings(machine, cores);
    machine->roof_gflops *= (double)cores / machine->cores;
    machine->roof_bf16_gflops *= (double)cores / machine->cores;
    machine->cores = cores;
    machine->tiles = machine->core[cores - 1].tile + 1;
    machine->numa_nodes = 0;
    for (int i = 0; i < cores; i++)
        if (machine->core[i].numa >= machine->numa_nodes)
            machine->numa_nodes = machine->core[i].numa + 1;
    return GRAPHI_OK;
}

graphi_status graphi_machine_load(const char *path, int cores, graphi_machine **out)
{
    GIVEN(out);
    void *data;
    size_t size;
    TRY(file_read(path, 16 << 20, &data, &size));
    json_error_t error;
    json_t *root = json_loadb(data, size, JSON_REJECT_DUPLICATES, &error);
    mem_free(data);
    if (!root)
        return json_lacks_memory(size)
                   ? fail_memory(path, size)
                   : fail(GRAPHI_INVALID, path, "found %s in line %d, expected JSON", error.text, error.line);
    graphi_machine *machine = mem_zalloc(sizeof *machine);
    graphi_status status = machine ? read_machine(path, root, machine) : fail_memory(path, sizeof *machine);
    json_decref(root);
    if (status == GRAPHI_OK)
        status = limit(machine, cores);
    if (status == GRAPHI_OK)
        *out = machine;
    else
        graphi_machine_destroy(machine);
    return status;
}

/* --- writing --- */

/* NULL: no memory. */
static json_t *write_groups(const graphi_machine *machine)
{
    json_t *groups = json_array();
    bool whole = groups != NULL;
    for (int i = 0; i < machine->cores;) {
        const int node = machine->core[i].numa, size = machine_tile_end(machine, i) - i;
        int tiles = 0;
        while (i < machine->cores && machine->core[i].numa == node && machine_tile_end(machine, i) == i + size) {
            tiles++;
            i += size;
        }
        json_t *group = json_pack("{s:i, s:i, s:i}", "numa", node, "tiles", tiles, "cores", size);
        whole &= json_array_append_new(groups, group) == 0;
    }
    if (whole)
        return groups;
    json_decref(groups);
    return NULL;
}

static json_t *write_key(const struct key *key, const graphi_machine *machine)
{
    const char *field = (const char *)machine + key->offset;
    json_t *string = key->type == TEXT ? json_string(field) : NULL;
    return key->type == TEXT    ? string ? string : json_string("unnamed") /* not UTF-8 */
           : key->type == BYTES ? json_integer(*(const int64_t *)field)
                                : json_real(*(const double *)field);
}

static int append(const char *part, size_t size, void *text)
{
    text_add(text, "%.*s", (int)size, part);
    return 0;
}

graphi_status graphi_machine_save(const graphi_machine *machine, const char *path)
{
    GIVEN(machine);
    json_t *root = json_pack("{s:s}", "schema", schema), *siblings = json_array();
    int refused = 0;
    for (int i = 0; i < KEYS; i++)
        refused |= json_object_set_new(root, keys[i].name, write_key(&keys[i], machine));
    refused |= json_object_set_new(root, "groups", write_groups(machine));
    for (int i = 0; i < machine->siblings; i++)
        refused |= json_array_append_new(siblings, json_integer(machine->core[machine->cores + i].sibling_of));
    refused |= json_object_set_new(root, "sibling_of", siblings);
    struct text text = {0};
    refused = refused || json_dump_callback(root, append, &text, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) != 0;
    json_decref(root);
    graphi_status status = refused || text.broken ? fail_memory(path, text.capacity)
                                                  : file_replace(path, text.data, text.count);
    text_free(&text);
    return status;
}
