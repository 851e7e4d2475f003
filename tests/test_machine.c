/* SPDX-License-Identifier: Apache-2.0 */
/* Topology from synthetic descriptions and recorded control groups, machine descriptions, measurement. Nothing here
 * depends on the machine that runs it, beyond having a core. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "machine/machine.h"
#include "machine/others.h"
#include "machine/private.h"
#include "folder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct folder folder;

static int make_folder(void **state)
{
    folder_make(&folder);
    return 0;
}

static int remove_folder(void **state)
{
    folder_remove(&folder);
    return 0;
}

static const char *path_of(const char *name)
{
    return folder_name(&folder, name);
}

static void write_text(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder.path, name);
    for (char *slash = strchr(path + strlen(folder.path) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    assert_int_equal(file_replace(path, text, strlen(text)), GRAPHI_OK);
}

/* --- topology --- */

/* Neighbours that do not share caches, siblings counted as cores, nodes numbered wrongly. */
static void synthetic_machine_is_in_cache_order(void **state)
{
    graphi_machine *machine;
    assert_int_equal(machine_from_synthetic("pack:2 numa:3 l2:4 core:5 pu:2", 0, 0, &machine), GRAPHI_OK);
    assert_int_equal(machine->cores, 120);
    assert_int_equal(machine->siblings, 120);
    assert_int_equal(machine->tiles, 24);
    assert_int_equal(machine->numa_nodes, 6);
    for (int i = 0; i < 240; i++) {
        const struct machine_core *core = &machine->core[i];
        assert_int_equal(core->tile, i % 120 / 5);
        assert_int_equal(core->numa, i % 120 / 20);
        assert_int_equal(core->sibling_of, i < 120 ? -1 : i - 120);
        assert_int_equal(core->os_index, -1);
    }
    graphi_machine_destroy(machine);
}

static void machines_without_shared_caches_work(void **state)
{
    graphi_machine *machine;
    assert_int_equal(machine_from_synthetic("pu:3", 0, 0, &machine), GRAPHI_OK); /* not even cores */
    assert_int_equal(machine->cores, 3);
    assert_int_equal(machine->tiles, 3);
    assert_int_equal(machine->numa_nodes, 1);
    graphi_machine_destroy(machine);
    machine = NULL;
    assert_int_equal(machine_from_synthetic("nonsense:2", 0, 0, &machine), GRAPHI_INVALID);
    assert_null(machine);
    graphi_machine_destroy(NULL);
}

/* One of several level-3 caches taken for all: what fits them would be charged to the memory. */
static void caches_of_level_3_add_up(void **state)
{
    static const struct {
        const char *shape;
        int cores;
        int64_t bytes;
    } expected[] = {{"pack:2 l3:3(size=1000) core:4 pu:2", 0, 6000},
                    {"pack:2 l3:3(size=1000) core:4 pu:2", 5, 2000},
                    {"l3:2(size=1000) core:4 pu:1", 1, 1000},
                    {"core:4 pu:1", 0, 0}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        graphi_machine *machine;
        assert_int_equal(machine_from_synthetic(expected[i].shape, 0, expected[i].cores, &machine), GRAPHI_OK);
        assert_int_equal(machine->l3_bytes, expected[i].bytes);
        graphi_machine_destroy(machine);
    }
}

/* A quota of half a core gives none, one of 3.9 gives four, siblings exceed the quota. */
static void quota_bounds_cores(void **state)
{
    static const struct {
        double quota;
        int cores, siblings;
    } expected[] = {{0, 8, 8}, {0.5, 1, 0}, {1, 1, 0}, {3.9, 3, 0}, {8, 8, 0}, {11, 8, 3}, {100, 8, 8}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        graphi_machine *machine;
        assert_int_equal(machine_from_synthetic("core:8 pu:2", expected[i].quota, 0, &machine), GRAPHI_OK);
        assert_int_equal(machine->cores, expected[i].cores);
        assert_int_equal(machine->siblings, expected[i].siblings);
        graphi_machine_destroy(machine);
    }
    graphi_machine *machine = NULL;
    assert_int_equal(machine_from_synthetic("core:8 pu:2", 2.5, 3, &machine), GRAPHI_INVALID);
    assert_non_null(
        strstr(graphi_message(), "found 3 cores asked for, expected at most 2 (8 in the affinity mask, quota 2.5)"));
    assert_null(machine);
}

/* Recorded control groups: a version, a parent's limit or a container's layout that is not understood. */
static void quota_is_read_from_control_groups(void **state)
{
    static const struct {
        const char *name, *self, *file[4][2];
        double quota;
    } record[] = {
        {"v2-half", "0::/box\n", {{"box/cpu.max", "50000 100000\n"}}, 0.5},
        {"v2-max", "0::/box\n", {{"box/cpu.max", "max 100000\n"}}, 0},
        {"v2-parent", "0::/a/b/c\n", {{"a/cpu.max", "150000 100000\n"}, {"a/b/c/cpu.max", "400000 100000\n"}}, 1.5},
        {"v2-own", "0::/a/b\n", {{"a/cpu.max", "900000 100000\n"}, {"a/b/cpu.max", "400000 100000\n"}}, 4},
        {"v2-namespace", "0::/\n", {{"cpu.max", "250000 100000\n"}}, 2.5},
        {"v2-garbage", "0::/box\n", {{"box/cpu.max", "what\n"}}, 0},
        {"v1-joint",
         "5:memory:/x\n3:cpu,cpuacct:/box\n",
         {{"cpu,cpuacct/box/cpu.cfs_quota_us", "150000\n"}, {"cpu,cpuacct/box/cpu.cfs_period_us", "50000\n"}},
         3},
        {"v1-none",
         "3:cpu:/box\n",
         {{"cpu/box/cpu.cfs_quota_us", "-1\n"}, {"cpu/box/cpu.cfs_period_us", "100000\n"}},
         0},
        {"v1-container",
         "3:cpu:/docker/0123\n",
         {{"cpu/cpu.cfs_quota_us", "200000\n"}, {"cpu/cpu.cfs_period_us", "100000\n"}},
         2},
        {"v1-not-cpu",
         "3:cpuset:/box\n",
         {{"cpu/cpu.cfs_quota_us", "200000\n"}, {"cpu/cpu.cfs_period_us", "100000\n"}},
         0},
        {"hybrid",
         "3:cpu:/\n0::/box\n",
         {{"cpu/cpu.cfs_quota_us", "700000\n"},
          {"cpu/cpu.cfs_period_us", "100000\n"},
          {"unified/box/cpu.max", "600000 100000\n"}},
         6},
        {"zero-period", "3:cpu:/\n", {{"cpu/cpu.cfs_quota_us", "700000\n"}, {"cpu/cpu.cfs_period_us", "0\n"}}, 0},
        {"broken-lines", "nothing\n:\n::\n", {{NULL, NULL}}, 0},
    };
    for (size_t i = 0; i < sizeof record / sizeof *record; i++) {
        char name[256], self[300], mount[300];
        snprintf(name, sizeof name, "%s/self", record[i].name);
        write_text(name, record[i].self);
        for (int f = 0; f < 4 && record[i].file[f][0]; f++) {
            snprintf(name, sizeof name, "%s/sys/%s", record[i].name, record[i].file[f][0]);
            write_text(name, record[i].file[f][1]);
        }
        snprintf(self, sizeof self, "%s/%s/self", folder.path, record[i].name);
        snprintf(mount, sizeof mount, "%s/%s/sys", folder.path, record[i].name);
        double quota = machine_quota(self, mount);
        if (fabs(quota - record[i].quota) > 1e-9)
            fail_msg("%s: quota %g, expected %g", record[i].name, quota, record[i].quota);
    }
    assert_true(machine_quota("/does/not/exist", "/sys") == 0);
}

/* Memory that a control group does not give kills the process that measures itself. */
static void room_is_what_control_groups_leave(void **state)
{
    static const struct {
        const char *name, *self, *file[4][2];
        double room;
    } record[] = {
        {"m2-own", "0::/box\n", {{"box/memory.max", "1000000\n"}, {"box/memory.current", "400000\n"}}, 600000},
        {"m2-parent",
         "0::/a/b\n",
         {{"a/memory.max", "900000\n"}, {"a/memory.current", "850000\n"}, {"a/b/memory.max", "max\n"}},
         50000},
        {"m2-full", "0::/box\n", {{"box/memory.max", "1000\n"}, {"box/memory.current", "4000\n"}}, 1},
        {"m2-none", "0::/box\n", {{"box/memory.max", "max\n"}, {"box/memory.current", "4000\n"}}, 0},
        {"m1-own",
         "7:memory:/box\n",
         {{"memory/box/memory.limit_in_bytes", "500\n"}, {"memory/box/memory.usage_in_bytes", "100\n"}},
         400},
        {"m1-none",
         "7:memory:/box\n",
         {{"memory/box/memory.limit_in_bytes", "9223372036854771712\n"}, {"memory/box/memory.usage_in_bytes", "1\n"}},
         0},
        {"m1-cpu", "7:cpu:/box\n", {{"memory/box/memory.limit_in_bytes", "5\n"}, {"cpu/box/cpu.shares", "1\n"}}, 0},
    };
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    if (before.rlim_cur != RLIM_INFINITY)
        skip();
    for (size_t i = 0; i < sizeof record / sizeof *record; i++) {
        char name[256], self[300], mount[300];
        snprintf(name, sizeof name, "%s/self", record[i].name);
        write_text(name, record[i].self);
        for (int f = 0; f < 4 && record[i].file[f][0]; f++) {
            snprintf(name, sizeof name, "%s/sys/%s", record[i].name, record[i].file[f][0]);
            write_text(name, record[i].file[f][1]);
        }
        snprintf(self, sizeof self, "%s/%s/self", folder.path, record[i].name);
        snprintf(mount, sizeof mount, "%s/%s/sys", folder.path, record[i].name);
        const double room = machine_room(self, mount);
        if (fabs(room - record[i].room) > 1e-9)
            fail_msg("%s: room %g, expected %g", record[i].name, room, record[i].room);
    }
    const struct rlimit most = {(rlim_t)1 << 46, before.rlim_max}; /* sanitizers map terabytes */
    assert_int_equal(setrlimit(RLIMIT_AS, &most), 0);
    const double room = machine_room("/does/not/exist", "/sys");
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_true(room >= 1 && room < (double)most.rlim_cur);
    assert_true(machine_room("/does/not/exist", "/sys") == 0);
}

/* More cores than the affinity mask allows. */
static void machine_at_hand_respects_the_mask(void **state)
{
    graphi_machine *machine;
    assert_int_equal(graphi_machine_create(0, &machine), GRAPHI_OK);
    assert_true(machine->captured && machine->cores >= 1);
    int cores = machine->cores, first = machine->core[0].os_index;
    assert_true(first >= 0);
    graphi_machine_destroy(machine);
    assert_int_equal(graphi_machine_create(cores + 1, &machine), GRAPHI_INVALID);

    struct cpu_mask before, one = {{0}};
    assert_int_equal(sched_getaffinity(0, sizeof before, mask_set(&before)), 0);
    mask_add(&one, first);
    assert_int_equal(sched_setaffinity(0, sizeof one, mask_set(&one)), 0);
    graphi_status status = graphi_machine_create(0, &machine);
    sched_setaffinity(0, sizeof before, mask_set(&before));
    assert_int_equal(status, GRAPHI_OK);
    assert_int_equal(machine->cores, 1);
    assert_int_equal(machine->core[0].os_index, first);
    graphi_machine_destroy(machine);
}

/* --- descriptions --- */

static void assert_same(const graphi_machine *a, const graphi_machine *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->cores, b->cores);
    assert_int_equal(a->siblings, b->siblings);
    assert_int_equal(a->tiles, b->tiles);
    assert_int_equal(a->numa_nodes, b->numa_nodes);
    assert_memory_equal(a->core, b->core, (size_t)(a->cores + a->siblings) * sizeof *a->core);
    assert_true(machine_hash(a) == machine_hash(b));
}

/* A field that is not written, or not read back to the last bit. */
static void description_survives_a_round_trip(void **state)
{
    static const char *const shapes[] = {"pack:2 numa:3 l2:4 core:5 pu:2", "pu:1", "numa:2 core:7 pu:3"};
    for (int i = 0; i < 3; i++) {
        graphi_machine *machine, *again;
        assert_int_equal(machine_from_synthetic(shapes[i], 0, 0, &machine), GRAPHI_OK);
        double *rate[] = {&machine->core_gflops, &machine->roof_gflops, &machine->roof_bf16_gflops,
                          &machine->core_bandwidth_gbs, &machine->bandwidth_gbs, &machine->l2_bandwidth_gbs,
                          &machine->l3_bandwidth_gbs, &machine->wake_ns, &machine->barrier_ns, &machine->lock_ns,
                          &machine->atomic_ns, &machine->schedule_ns, &machine->gemm_saturation,
                          &machine->elementwise_saturation, &machine->entry_ns};
        for (int r = 0; r < 15; r++)
            *rate[r] = 1.0 / 3 + r;
        machine->even_split = 1;
        machine->unpinned_slowdown = 1.1;
        machine->l3_bytes = 123456789012;
        assert_int_equal(graphi_machine_save(machine, path_of("m.json")), GRAPHI_OK);
        assert_int_equal(graphi_machine_load(path_of("m.json"), 0, &again), GRAPHI_OK);
        assert_same(machine, again);
        assert_false(again->captured);
        graphi_machine_destroy(machine);
        graphi_machine_destroy(again);
    }
}

/* Shipped descriptions that do not load, or do not say what the papers say. */
static void papers_machines_load(void **state)
{
    static const struct {
        const char *path;
        int cores, tiles, nodes;
        double roof;
    } expected[] = {
        {"machines/xeon-phi-7250.json", 68, 34, 1, 68 * 89.6},
        {"machines/xeon-phi-7250-smt.json", 68, 34, 1, 68 * 89.6},
        {"machines/xeon-phi-7250-papers.json", 68, 34, 1, 68 * 89.6},
        {"machines/e5-2650v4-x2.json", 24, 24, 2, 1690},
        {"machines/knl-7210.json", 64, 32, 4, 64 * 83.2},
        {"machines/e5-4650-x4.json", 32, 32, 4, 32 * 43.2},
        {"machines/e7-4830v4-x4.json", 56, 56, 4, 56 * 64},
        {"machines/opteron-6168-x8.json", 48, 48, 8, 48 * 15.2},
        {"machines/synthetic-1024.json", 1024, 256, 8, 102400},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        graphi_machine *machine = NULL;
        graphi_machine_info info;
        if (graphi_machine_load(expected[i].path, 0, &machine) != GRAPHI_OK)
            fail_msg("%s", graphi_message());
        graphi_machine_get_info(machine, &info);
        assert_int_equal(info.cores, expected[i].cores);
        assert_int_equal(info.tiles, expected[i].tiles);
        assert_int_equal(info.numa_nodes, expected[i].nodes);
        assert_true(fabs(info.roof_gflops - expected[i].roof) < 1e-6 * expected[i].roof);
        assert_false(info.captured);
        assert_int_equal(graphi_machine_measure(machine, 0.1), GRAPHI_UNSUPPORTED);
        graphi_machine_destroy(machine);
    }
}

/* Two executors on one level-2 cache while others idle; a core that is nobody's seat, or two people's. */
static void executors_sit_on_tiles_of_their_own(void **state)
{
    static const struct {
        int groups, width, first[4]; /* of the first groups, where they begin */
    } cases[] = {{8, 1, {0, 2, 4, 6}},   {4, 17, {0, 17, 34, 51}}, {4, 15, {0, 16, 32, 48}}, {34, 2, {0, 2, 4, 6}},
                 {3, 21, {0, 22, 44}},   {35, 1, {0, 1, 2, 3}},    {1, 68, {0}},             {2, 3, {0, 4}},
                 {3, 22, {0, 22, 44}},   {0, 0, {0}}};
    graphi_machine *machine = NULL;
    int order[68];
    assert_int_equal(graphi_machine_load("machines/xeon-phi-7250.json", 0, &machine), GRAPHI_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool seated[68] = {false};
        const int width = cases[i].width;
        machine_seats(machine, NULL, machine->cores, cases[i].groups, width, order);
        for (int k = 0; k < 68; k++) {
            assert_in_range(order[k], 0, 67);
            assert_false(seated[order[k]]);
            seated[order[k]] = true;
        }
        for (int g = 0; g < 4 && g < cases[i].groups; g++)
            for (int m = 0; m < width; m++)
                assert_int_equal(order[g * width + m], cases[i].first[g] + m);
    }
    graphi_machine_destroy(machine);
}

#define HEAD "{\"schema\":\"graphi-machine/1\",\"name\":\"m\",\"isa\":\"avx2\","
#define GROUPS "\"groups\":[{\"numa\":0,\"tiles\":1,\"cores\":2}]"

/* A description that is accepted although wrong, or refused without saying what is wrong. */
static void bad_descriptions_are_refused_by_key(void **state)
{
    static const char *const bad[][2] = {
        {"", "expected JSON"},
        {"[1]", "found no object"},
        {"{\"name\":\"m\"}", "key \"schema\": found no such key, expected \"graphi-machine/1\""},
        {"{\"schema\":\"graphi-machine/2\"}", "key \"schema\": found \"graphi-machine/2\""},
        {HEAD GROUPS ",\"wake\":3}", "key \"wake\": found 3, expected no such key"},
        {HEAD GROUPS ",\"wake_ns\":-3}", "key \"wake_ns\": found -3, expected a number from 0"},
        {HEAD GROUPS ",\"wake_ns\":\"fast\"}", "key \"wake_ns\": found \"fast\", expected a number"},
        {HEAD GROUPS ",\"wake_ns\":1,\"wake_ns\":2}", "duplicate"},
        {HEAD GROUPS ",\"wake_ns\":{}}", "key \"wake_ns\": found an object, expected a number"},
        {HEAD GROUPS ",\"wake_ns\":null}", "key \"wake_ns\": found null, expected a number"},
        {HEAD GROUPS ",\"wake_ns\":1e-9}", "key \"wake_ns\": found 1e-09, expected 0 or a number from 1e-06"},
        {HEAD GROUPS ",\"l2_bytes\":2.0}", "key \"l2_bytes\": found 2.0, expected an integer"},
        {HEAD GROUPS ",\"even_split\":0.5}", "key \"even_split\": found 0.5, expected 0 or a number from 1 to 1"},
        {HEAD GROUPS ",\"gemm_saturation\":0.5}", "key \"gemm_saturation\": found 0.5, expected 0 or a number from 1"},
        {HEAD GROUPS ",\"cpu\":\"a\\u001b[31m\"}", "expected a text of 1 to 127 bytes in one line"},
        {HEAD GROUPS ",\"cpu\":\"a\\u009b31m\"}", "expected a text of 1 to 127 bytes in one line"},
        {HEAD GROUPS ",\"l2_bytes\":1.5}", "key \"l2_bytes\": found 1.5, expected an integer"},
        {HEAD GROUPS ",\"unpinned_slowdown\":0.5}",
         "key \"unpinned_slowdown\": found 0.5, expected 0 or a number from 1"},
        {HEAD GROUPS ",\"sibling_of\":[2]}", "key \"sibling_of\": found 2, expected an integer from 0 to 1"},
        {HEAD GROUPS ",\"sibling_of\":7}", "key \"sibling_of\": found 7, expected a list"},
        {HEAD "\"groups\":[]}", "key \"groups\": found a list"},
        {HEAD "\"groups\":[3]}", "key \"groups\": found 3"},
        {HEAD "\"groups\":[{\"numa\":0,\"tiles\":0,\"cores\":2}]}",
         "key \"groups.tiles\": found 0, expected an integer from 1"},
        {HEAD "\"groups\":[{\"numa\":0,\"tiles\":2}]}", "key \"groups.cores\": found no such key"},
        {HEAD "\"groups\":[{\"numa\":1,\"tiles\":2,\"cores\":1}]}", "key \"groups.numa\": found 1"},
        {HEAD "\"groups\":[{\"numa\":0,\"tiles\":2,\"cores\":1,\"speed\":1}]}", "key \"speed\""},
        {HEAD "\"groups\":[{\"numa\":0,\"tiles\":4000,\"cores\":4000}]}", "expected at most 4096"},
        {HEAD "\"groups\":[{\"numa\":0,\"tiles\":4096,\"cores\":1},{\"numa\":0,\"tiles\":1,\"cores\":1}]}",
         "found 4097 cores or more in \"groups\", expected at most 4096"},
        {"{\"schema\":\"graphi-machine/1\",\"name\":\"m\",\"isa\":\"sse9\"," GROUPS "}", "key \"isa\": found \"sse9\""},
        {"{\"schema\":\"graphi-machine/1\",\"name\":\"\",\"isa\":\"avx2\"," GROUPS "}",
         "key \"name\": found \"\", expected a text"},
        {"{\"schema\":\"graphi-machine/1\",\"isa\":\"avx2\"," GROUPS "}",
         "key \"name\": found no such key, expected one"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        graphi_machine *machine = NULL;
        write_text("bad.json", bad[i][0]);
        assert_int_equal(graphi_machine_load(path_of("bad.json"), 0, &machine), GRAPHI_INVALID);
        assert_null(machine);
        if (!strstr(graphi_message(), bad[i][1]))
            fail_msg("case %zu: \"%s\" does not contain \"%s\"", i, graphi_message(), bad[i][1]);
    }
    graphi_machine *machine;
    write_text("good.json", HEAD GROUPS ",\"unpinned_slowdown\":0,\"wake_ns\":0}"); /* 0: not modelled */
    assert_int_equal(graphi_machine_load(path_of("good.json"), 0, &machine), GRAPHI_OK);
    graphi_machine_destroy(machine);
    write_text("good.json", HEAD GROUPS "}"); /* the smallest good one */
    assert_int_equal(graphi_machine_load(path_of("good.json"), 0, &machine), GRAPHI_OK);
    graphi_machine_destroy(machine);
    assert_int_equal(graphi_machine_load(path_of("missing.json"), 0, &machine), GRAPHI_IO);
}

/* The first cores of a description, with what belongs to them: a sibling of a core that is gone, a tile too many or the
 * roof of all cores would be simulated. */
static void a_description_can_be_limited(void **state)
{
    graphi_machine *machine;
    graphi_machine_info info;
    write_text("limit.json", HEAD "\"roof_gflops\":100,\"bandwidth_gbs\":7,\"sibling_of\":[4,1,0],\"groups\":["
                                  "{\"numa\":0,\"tiles\":2,\"cores\":2},{\"numa\":1,\"tiles\":1,\"cores\":1}]}");
    assert_int_equal(graphi_machine_load(path_of("limit.json"), 6, &machine), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "m: found 6 cores asked for, expected 1 to 5"));
    assert_int_equal(graphi_machine_load(path_of("limit.json"), -1, &machine), GRAPHI_INVALID);
    assert_int_equal(graphi_machine_load(path_of("limit.json"), 0, &machine), GRAPHI_OK);
    uint64_t whole = machine_hash(machine);
    graphi_machine_destroy(machine);
    assert_int_equal(graphi_machine_load(path_of("limit.json"), 3, &machine), GRAPHI_OK);
    assert_true(machine_hash(machine) != whole);
    graphi_machine_get_info(machine, &info);
    assert_int_equal(info.cores, 3);
    assert_int_equal(info.tiles, 2);
    assert_int_equal(info.numa_nodes, 1);
    assert_int_equal(info.siblings, 2);
    assert_int_equal(machine->core[3].sibling_of, 1);
    assert_int_equal(machine->core[4].sibling_of, 0);
    assert_true(fabs(info.roof_gflops - 60) < 1e-9 && info.bandwidth_gbs == 7);
    graphi_machine_destroy(machine);
}

/* A plan for another machine is taken for this one's, or refused because a rate was measured anew. */
static void hash_follows_the_structure(void **state)
{
    graphi_machine *a, *b;
    assert_int_equal(machine_from_synthetic("core:8 pu:1", 0, 0, &a), GRAPHI_OK);
    assert_int_equal(machine_from_synthetic("l2:2 core:4 pu:1", 0, 0, &b), GRAPHI_OK);
    assert_true(machine_hash(a) != machine_hash(b));
    uint64_t before = machine_hash(a);
    a->wake_ns = 7;
    assert_true(machine_hash(a) != before);
    a->captured = true;
    before = machine_hash(a);
    a->wake_ns = 8;
    assert_true(machine_hash(a) == before);
    graphi_machine_destroy(a);
    graphi_machine_destroy(b);
}

static void text_names_what_matters(void **state)
{
    graphi_machine *machine;
    char *text;
    assert_int_equal(graphi_machine_load("machines/knl-7210.json", 0, &machine), GRAPHI_OK);
    assert_int_equal(graphi_machine_print(machine, &text), GRAPHI_OK);
    assert_non_null(strstr(text, "simulated"));
    assert_non_null(strstr(text, "64 in 32 tiles, 4 NUMA nodes"));
    assert_non_null(strstr(text, "node 3: [48 49][50 51]"));
    graphi_free(text);
    graphi_machine_destroy(machine);
}

/* --- measurement and failure --- */

/* Rates that are off by orders of magnitude: a folded loop, a buffer that is not read. */
static void measurement_is_plausible(void **state)
{
    graphi_machine *machine;
    assert_int_equal(graphi_machine_create(0, &machine), GRAPHI_OK);
    assert_int_equal(graphi_machine_measure(machine, 0.2), GRAPHI_OK);
    char *text;
    assert_int_equal(graphi_machine_print(machine, &text), GRAPHI_OK);
    print_message("%s", text);
    graphi_free(text);
    assert_in_range((uintmax_t)(machine->core_gflops * 1000), 10, 1000 * 1000);
    assert_true(machine->roof_gflops > machine->core_gflops * 0.2);
    assert_in_range((uintmax_t)(machine->core_bandwidth_gbs * 1000), 10, 2000 * 1000);
    assert_true(machine->l2_bandwidth_gbs > machine->core_bandwidth_gbs * 0.2);
    assert_true(machine->lock_ns > 0.1 && machine->atomic_ns > 0.1);
    assert_true(machine->cores == 1 || machine->wake_ns > 1);
    graphi_machine_destroy(machine);
}

/* The plain and the AVX2 loops: run wherever the machine can, so that they are tested on newer ones too. */
static void loops_of_every_set_run(void **state)
{
    static const char *const names[] = {"plain", "avx2", "avx512", "bf16"};
    static const int lanes[] = {4, 8, 16, 16};
    float *data = mem_alloc(4096);
    for (int i = 0; i < 1024; i++)
        data[i] = 1;
    graphi_machine *machine;
    assert_int_equal(graphi_machine_create(0, &machine), GRAPHI_OK);
    for (int i = 0; i < 4; i++) {
        const struct roof_kernel *kernel = roof_kernel(names[i]);
        assert_true(kernel->multiply(10) == 10.0 * 12 * 2 * lanes[i]);
        assert_true(kernel->read(data, 4096) == 1024.0 / lanes[i]); /* the first lane of the sums */
        if (!strcmp(machine->isa, names[i]))
            break;
    }
    mem_free(data);
    graphi_machine_destroy(machine);
}

enum { CREATE, SYNTHETIC, LOAD, MEASURE, PRINT };

static graphi_status attempt(int what, graphi_machine *given)
{
    graphi_machine *machine = NULL;
    char *text = NULL;
    graphi_status status = what == CREATE      ? graphi_machine_create(0, &machine)
                           : what == SYNTHETIC ? machine_from_synthetic("core:4 pu:2", 0, 0, &machine)
                           : what == LOAD      ? graphi_machine_load("machines/knl-7210.json", 0, &machine)
                           : what == MEASURE   ? graphi_machine_measure(given, 0.001)
                                               : graphi_machine_print(given, &text);
    if (status != GRAPHI_OK)
        assert_true(machine == NULL && text == NULL); /* results stay untouched */
    graphi_machine_destroy(machine);
    graphi_free(text);
    return status;
}

/* A failed allocation that is not noticed, or leaves something behind (the address sanitizer looks). */
static void every_allocation_may_fail(void **state)
{
    graphi_machine *given;
    assert_int_equal(graphi_machine_create(0, &given), GRAPHI_OK);
    for (int what = CREATE; what <= PRINT; what++) {
        graphi_status status = GRAPHI_MEMORY;
        long n = 0;
        for (; status != GRAPHI_OK && n < 100; n++) {
            mem_fail_after(n);
            status = attempt(what, given);
            mem_fail_after(-1);
            assert_true(status == GRAPHI_OK || status == GRAPHI_MEMORY);
        }
        assert_int_equal(status, GRAPHI_OK);
        assert_true(n > 1);
    }
    graphi_machine_destroy(given);
}

/* A full disk leaves half a description under the old name. */
static void failed_save_keeps_the_old_file(void **state)
{
    graphi_machine *machine, *again;
    assert_int_equal(machine_from_synthetic("core:4 pu:1", 0, 0, &machine), GRAPHI_OK);
    assert_int_equal(graphi_machine_save(machine, path_of("kept.json")), GRAPHI_OK);
    graphi_status status = GRAPHI_IO;
    for (long n = 0; status != GRAPHI_OK && n < 20; n++) {
        file_fail_after(n);
        status = graphi_machine_save(machine, path_of("kept.json"));
        file_fail_after(-1);
        assert_int_equal(graphi_machine_load(path_of("kept.json"), 0, &again), GRAPHI_OK);
        graphi_machine_destroy(again);
    }
    assert_int_equal(status, GRAPHI_OK);
    assert_int_equal(graphi_machine_save(machine, "/does/not/exist/m.json"), GRAPHI_IO);
    graphi_machine_destroy(machine);
}

/* --- other processes --- */

/* As /proc/stat of a machine whose cores all have these counters. */
static struct others counted(const char *counters)
{
    static char text[MASK_CPUS * 80];
    size_t used = (size_t)snprintf(text, sizeof text, "cpu  1 2 3 4 5 6 7 8 0 0\n");
    for (int cpu = 0; cpu < MASK_CPUS; cpu++)
        used += (size_t)snprintf(text + used, sizeof text - used, "cpu%d %s\n", cpu, counters);
    snprintf(text + used, sizeof text - used, "intr 5 5 5 5 5 5 5 5 5 5\ncpu0 900 900 900 0 0 900 900 900 0 0\n");
    write_text("stat", text);
    struct others o = others_read(path_of("stat"));
    o.own = 0;
    return o;
}

/* A plan that was tuned beside others would look like one of a quiet machine; or every one like one of a loaded one. */
static void what_others_use_is_told(void **state)
{
    static const struct {
        const char *before, *after;
        int own; /* ticks a core */
        double share;
    } cases[] = {
        {"10 0 0 90 0 0 0 0 0 0", "110 0 0 90 0 0 0 0 0 0", 100, 0}, /* all of it is ours */
        {"10 0 0 90 0 0 0 0 0 0", "110 0 0 90 0 0 0 0 0 0", 60, 0.4},
        {"10 0 0 90 0 0 0 0 0 0", "60 10 5 90 10 5 5 15 60 9", 40, 0.5}, /* user has guest; waiting is no use */
        {"10 0 0 90 0 0 0 0 0 0", "18 0 0 182 0 0 0 0 0 0", 0, 0},       /* less than a tenth */
        {"10 0 0 90 0 0 0 0 0 0", "12 0 0 93 0 0 0 0 0 0", 0, 0},        /* ticks that are hardly counted */
        {"10 0 0 90 0 0 0 0 0 0", "10 0 0 90 0 0 0 0 0 0", 0, 0},
        {"10 0 0 90 0 0 0 0 0 0", "210 0 0 90 0 0 0 0 0 0", -400, 1},
        {"0 0", "0 0", 0, 0}, /* no counters */
        {"10 0 0 90 0 0 0 0 0 0", "no", 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct others before = counted(cases[i].before);
        struct others after = counted(cases[i].after);
        after.own = cases[i].own * after.cores;
        const double share = others_share(&before, &after);
        if (fabs(share - cases[i].share) > 1e-9)
            fail_msg("case %zu: found %g, expected %g", i, share, cases[i].share);
    }
    const struct others none = others_read(path_of("missing")), now = others_read("/proc/stat");
    assert_true(none.cores == 0 && others_share(&none, &none) == 0 && others_share(&none, &now) == 0);
    assert_true(now.cores == 0 || (now.own >= 0 && now.all >= now.busy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synthetic_machine_is_in_cache_order),
        cmocka_unit_test(machines_without_shared_caches_work),
        cmocka_unit_test(caches_of_level_3_add_up),
        cmocka_unit_test(quota_bounds_cores),
        cmocka_unit_test(quota_is_read_from_control_groups),
        cmocka_unit_test(room_is_what_control_groups_leave),
        cmocka_unit_test(machine_at_hand_respects_the_mask),
        cmocka_unit_test(description_survives_a_round_trip),
        cmocka_unit_test(papers_machines_load),
        cmocka_unit_test(executors_sit_on_tiles_of_their_own),
        cmocka_unit_test(bad_descriptions_are_refused_by_key),
        cmocka_unit_test(a_description_can_be_limited),
        cmocka_unit_test(hash_follows_the_structure),
        cmocka_unit_test(text_names_what_matters),
        cmocka_unit_test(measurement_is_plausible),
        cmocka_unit_test(loops_of_every_set_run),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(failed_save_keeps_the_old_file),
        cmocka_unit_test(what_others_use_is_told),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
