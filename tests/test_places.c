/* SPDX-License-Identifier: Apache-2.0 */
/* Places: nodes of recorded and synthetic machines, parts of them, and on which node memory lies. */
#include "graphi/place.h"
#include "base/memory.h"
#include "base/place.h"
#include "leased.h"
#include "machine/pages.h"

#include <hwloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fixture.h"

static graphi_machine *synthetic(const char *description)
{
    graphi_machine *made;
    check_ok(machine_from_synthetic(description, 0, 0, &made));
    return made;
}

static graphi_machine *part_of(const graphi_machine *whole, int i, int parts)
{
    graphi_machine *part;
    check_ok(graphi_machine_part(whole, i, parts, NULL, &part));
    return part;
}

/* --- nodes --- */

/* A topology as hwloc would have recorded it; `fast` is the subtype of the last node, NULL: all are alike. */
static graphi_machine *recorded(const char *description, const char *fast)
{
    hwloc_topology_t topology;
    char *xml;
    int bytes;
    graphi_machine *made;
    assert_int_equal(hwloc_topology_init(&topology), 0);
    assert_int_equal(hwloc_topology_set_synthetic(topology, description), 0);
    assert_int_equal(hwloc_topology_load(topology), 0);
    const int nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
    hwloc_obj_t last = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, (unsigned)nodes - 1);
    if (fast)
        last->subtype = strdup(fast);
    assert_int_equal(hwloc_topology_export_xmlbuffer(topology, &xml, &bytes, 0), 0);
    check_ok(machine_from_xml(xml, &made));
    hwloc_free_xmlbuffer(topology, xml);
    hwloc_topology_destroy(topology);
    return made;
}

static graphi_memory_node node_at(const graphi_machine *of, int i)
{
    graphi_memory_node node = {.system = -7};
    assert_true(graphi_machine_node_at(of, i, &node));
    return node;
}

/* Memory of a Xeon Phi in flat mode: cores would be put on the small fast node, or not see it at all. */
static void fast_memory_stands_beside_that_of_the_cores(void **state)
{
    graphi_machine *knl = recorded("[numa(memory=96GB)] [numa(memory=16GB)] l2:4 core:2 pu:4", "MCDRAM");
    graphi_memory_node slow = node_at(knl, 0), fast = node_at(knl, 1);
    assert_int_equal(knl->numa_nodes, 1);
    assert_int_equal(slow.cores, 8);
    assert_false(slow.high_bandwidth);
    assert_true(fast.high_bandwidth);
    assert_int_equal(fast.cores, 0);
    assert_int_equal(fast.near, 0);
    assert_true(fast.bytes > 0 && fast.bytes < slow.bytes);
    assert_false(graphi_machine_node_at(knl, 2, &fast));
    char *text;
    check_ok(graphi_machine_print(knl, &text));
    assert_non_null(strstr(text, "high bandwidth near node 0"));
    graphi_free(text);
    graphi_machine_destroy(knl);
}

/* Two nodes an executor would be put beside, of which one has no cores. */
static void nodes_without_cores_are_listed(void **state)
{
    graphi_machine *two = recorded("[numa(memory=8GB)] [numa(memory=64GB)] core:4 pu:1", NULL);
    assert_int_equal(two->numa_nodes, 1);
    assert_int_equal(node_at(two, 1).cores, 0);
    assert_false(node_at(two, 1).high_bandwidth);
    graphi_machine_destroy(two);
}

static void nodes_have_the_system_s_numbers(void **state)
{
    graphi_machine *eight = synthetic("pack:2 numa:4(indexes=7,6,5,4,3,2,1,0) core:3 pu:1");
    assert_int_equal(eight->numa_nodes, 8);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(node_at(eight, i).cores, 3);
        assert_int_equal(node_at(eight, i).near, i);
    }
    assert_int_equal(node_at(eight, 0).system, 7);
    assert_int_equal(node_at(eight, 7).system, 0);
    graphi_machine_destroy(eight);
}

/* --- parts --- */

/* Every core in one part, neighbours together, no part with two cores more than another. */
static void parts_share_out_the_cores(void **state)
{
    graphi_machine *whole = synthetic("pack:2 l2:5 core:2 pu:2"); /* 20 cores */
    for (int parts = 1; parts <= 20; parts++) {
        int cores = 0, siblings = 0;
        for (int i = 0; i < parts; i++) {
            graphi_machine *part = part_of(whole, i, parts);
            assert_in_range(part->cores, 20 / parts, (20 + parts - 1) / parts);
            assert_int_equal(part->core[0].tile, 0);
            assert_int_equal(part->core[0].numa, 0);
            assert_int_equal(part->siblings, part->cores);
            for (int k = 0; k < part->siblings; k++)
                assert_int_equal(part->core[part->cores + k].sibling_of, k);
            cores += part->cores;
            siblings += part->siblings;
            graphi_machine_destroy(part);
        }
        assert_int_equal(cores, 20);
        assert_int_equal(siblings, 20);
    }
    graphi_machine_destroy(whole);
}

static void parts_zero_are_the_nodes(void **state)
{
    graphi_machine *eight = synthetic("pack:2 numa:4 core:3 pu:1");
    for (int i = 0; i < 8; i++) {
        graphi_machine *part = part_of(eight, i, 0);
        assert_int_equal(part->cores, 3);
        assert_int_equal(part->numa_nodes, 1);
        assert_int_equal(node_at(part, 0).system, i);
        assert_false(graphi_machine_node_at(part, 1, &(graphi_memory_node){0}));
        graphi_machine_destroy(part);
    }
    graphi_machine *part = NULL;
    assert_int_equal(graphi_machine_part(eight, 8, 0, NULL, &part), GRAPHI_INVALID);
    assert_null(part);
    graphi_machine_destroy(eight);
}

/* A plan would be made for cores that another part has, with rates of the whole machine. */
static void a_part_has_its_share_of_what_is_shared(void **state)
{
    graphi_machine *whole;
    check_ok(graphi_machine_load("machines/knl-7210.json", 0, &whole));
    graphi_machine *part = part_of(whole, 1, 4);
    assert_int_equal(part->cores, 16);
    assert_true(part->roof_gflops * 4 > whole->roof_gflops * 0.999);
    assert_true(part->roof_gflops * 4 < whole->roof_gflops * 1.001);
    assert_true(part->bandwidth_gbs < whole->bandwidth_gbs);
    assert_true(part->core_bandwidth_gbs <= part->bandwidth_gbs);
    assert_non_null(strstr(part->name, "part 1 of 4"));
    graphi_machine_destroy(whole); /* the part outlives it */
    graphi_machine_info info;
    graphi_machine_get_info(part, &info);
    assert_int_equal(info.cores, 16);
    graphi_machine_destroy(part);
}

static void more_parts_than_cores_have_to_be_asked_for(void **state)
{
    graphi_machine *two = synthetic("core:2 pu:1"), *part = NULL;
    assert_int_equal(graphi_machine_part(two, 0, 3, NULL, &part), GRAPHI_INVALID);
    assert_non_null(strstr(graphi_message(), "found 3 parts of 2 cores"));
    assert_int_equal(graphi_machine_part(two, 2, 2, NULL, &part), GRAPHI_INVALID);
    assert_int_equal(graphi_machine_part(two, -1, 2, NULL, &part), GRAPHI_INVALID);
    assert_int_equal(graphi_machine_part(two, 0, -1, NULL, &part), GRAPHI_INVALID);
    assert_null(part);
    check_ok(graphi_machine_part(two, 2, 3, &(graphi_part_options){.oversubscribe = true}, &part));
    assert_int_equal(part->cores, 1);
    graphi_machine_destroy(part);
    graphi_machine_destroy(two);
}

/* The second would wait for the first's core for ever. */
static void parts_that_share_a_core_lease_none(void **state)
{
    const graphi_part_options many = {.oversubscribe = true};
    graphi_machine *part[2];
    graphi_lease *lease[2];
    for (int i = 0; i < 2; i++) {
        check_ok(graphi_machine_part(here, i * here->cores, 2 * here->cores, &many, &part[i]));
        check_ok(graphi_lease_take(part[i], NULL, &lease[i]));
    }
    graphi_lease_info info;
    graphi_lease_get_info(lease[0], &info);
    assert_false(info.pinned);
    assert_non_null(strstr(info.note, "share cores"));
    for (int i = 0; i < 2; i++) {
        check_ok(graphi_lease_release(lease[i]));
        graphi_machine_destroy(part[i]);
    }
}

static void leases_of_different_parts_do_not_wait_for_each_other(void **state)
{
    if (here->cores < 2)
        skip();
    graphi_machine *part[2];
    graphi_lease *lease[2];
    graphi_lease_info info[2];
    for (int i = 0; i < 2; i++) {
        part[i] = part_of(here, i, 2);
        check_ok(graphi_lease_take(part[i], NULL, &lease[i]));
        graphi_lease_get_info(lease[i], &info[i]);
        assert_true(info[i].waited_ms == 0);
    }
    assert_int_not_equal(part[0]->core[0].os_index, part[1]->core[0].os_index);
    for (int i = 0; i < 2; i++) {
        check_ok(graphi_lease_release(lease[i]));
        graphi_machine_destroy(part[i]);
    }
}

/* --- pages --- */

enum { PAGES = 64 };

static graphi_page_count count_pages(unsigned char *data, size_t page, enum pages_ask ask)
{
    void *list[PAGES];
    graphi_page_count count = {.page_bytes = (int64_t)page};
    for (size_t i = 0; i < PAGES; i++)
        list[i] = data + i * page;
    pages_add(list, PAGES, ask, &count);
    return count;
}

static int64_t located(const graphi_page_count *count)
{
    int64_t sum = 0;
    for (int i = 0; i < GRAPHI_MOST_NODES; i++)
        sum += count->on[i];
    return sum;
}

/* Pages that nobody wrote would be told to lie somewhere, or those that were written nowhere. */
static void written_pages_are_found_and_others_absent(void **state)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *data = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(data != MAP_FAILED);
    madvise(data, PAGES * page, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < PAGES / 4; i++)
        data[i * page] = 1;
    for (int ask = PAGES_ASK_ALL; ask <= PAGES_ASK_NOBODY; ask++) {
        const graphi_page_count count = count_pages(data, page, (enum pages_ask)ask);
        assert_int_equal(count.pages, PAGES);
        assert_int_equal(located(&count) + count.absent + count.unknown, PAGES);
        if (ask == PAGES_ASK_NOBODY)
            assert_int_equal(count.unknown, PAGES);
        if (count.unknown == 0)
            assert_int_equal(located(&count), PAGES / 4);
        else
            assert_true(count.note[0] != 0);
    }
    munmap(data, PAGES * page);
}

static graphi_run *executed_run(graphi_graph **graph, graphi_plan **plan, graphi_state **params)
{
    graphi_run *run;
    const int64_t dims[] = {512, 512};
    check_ok(graphi_graph_create(graph));
    graphi_value x = graphi_input(*graph, "x", GRAPHI_F32, 2, dims);
    graphi_value w = graphi_parameter(*graph, "w", GRAPHI_F32, 2, dims, &(graphi_initializer){.b = 1});
    graphi_output(*graph, "y", graphi_tanh(*graph, graphi_matmul(*graph, x, w, 0, 0)));
    check_ok(graphi_plan_create(*graph, here, NULL, plan));
    check_ok(graphi_state_create(*graph, 1, params));
    check_ok(graphi_run_create(*plan, *params, &run));
    feed_zeros(*graph, run);
    check_ok(graphi_run_execute(run));
    return run;
}

/* Of what a thread makes while it has entered, every page that is told lies on its node. */
static void a_run_lies_on_the_nodes_of_its_lease(void **state)
{
    graphi_lease *lease;
    graphi_lease_info info;
    graphi_graph *graph;
    graphi_plan *plan;
    graphi_state *params;
    check_ok(graphi_lease_take(here, &(graphi_lease_options){.huge_pages = true}, &lease));
    check_ok(graphi_lease_enter(lease));
    graphi_run *run = executed_run(&graph, &plan, &params);
    check_ok(graphi_lease_leave(lease));
    graphi_lease_get_info(lease, &info);
    for (int of = GRAPHI_PAGES_PLAN; of <= GRAPHI_PAGES_INPUTS; of++) {
        graphi_page_count count;
        check_ok(graphi_pages(run, (graphi_pages_of)of, &count));
        assert_int_equal(located(&count) + count.absent + count.unknown, count.pages);
        int64_t own = 0;
        for (int i = 0; i < here->numa_nodes; i++)
            own += count.on[node_at(here, i).system];
        if (info.bound)
            assert_int_equal(own, located(&count));
        if (of == GRAPHI_PAGES_ARENA || of == GRAPHI_PAGES_INPUTS)
            assert_true(count.pages >= 256); /* a megabyte */
    }
    graphi_page_count untouched = {.pages = 7};
    assert_int_equal(graphi_pages(run, (graphi_pages_of)5, &untouched), GRAPHI_INVALID);
    assert_int_equal(untouched.pages, 7);
    graphi_run_destroy(run);
    graphi_state_destroy(params);
    graphi_plan_destroy(plan);
    graphi_graph_destroy(graph);
    check_ok(graphi_lease_release(lease));
}

/* Where the system forbids it, or has no such node, a note tells; who insists is refused. */
static void binding_that_is_refused_is_a_note_unless_insisted_on(void **state)
{
    graphi_machine elsewhere = *here;
    struct machine_node nowhere[] = {{.os_index = PLACE_MOST_NODES - 1, .near = 0, .cores = here->cores}};
    elsewhere.node = nowhere;
    elsewhere.numa_nodes = elsewhere.memory_nodes = 1;
    elsewhere.system_nodes = 2;
    graphi_lease *lease = NULL;
    graphi_lease_info info;
    check_ok(graphi_lease_take(&elsewhere, NULL, &lease));
    graphi_lease_get_info(lease, &info);
    assert_false(info.bound);
    assert_non_null(strstr(info.note, "memory is not bound"));
    check_ok(graphi_lease_release(lease));
    lease = NULL;
    assert_int_equal(graphi_lease_take(&elsewhere, &(graphi_lease_options){.bind = GRAPHI_ON}, &lease),
                     GRAPHI_UNSUPPORTED);
    assert_null(lease);
    check_ok(graphi_lease_take(&elsewhere, &(graphi_lease_options){.bind = GRAPHI_OFF}, &lease));
    graphi_lease_get_info(lease, &info);
    assert_null(strstr(info.note, "memory is not bound"));
    check_ok(graphi_lease_release(lease));
}

static void failed_allocations_leave_nothing(void **state)
{
    graphi_machine *whole = synthetic("pack:2 numa:2 core:2 pu:1"), *part = NULL;
    graphi_status status = GRAPHI_MEMORY;
    for (long n = 0; status != GRAPHI_OK && n < 50; n++) {
        mem_fail_after(n);
        status = graphi_machine_part(whole, 1, 0, NULL, &part);
        mem_fail_after(-1);
        assert_true(status == GRAPHI_OK || (status == GRAPHI_MEMORY && !part));
    }
    assert_non_null(part);
    graphi_machine_destroy(part);
    graphi_machine_destroy(whole);
}

static int open_all(void **state) { return set_up_cores(0) || open_machines(state); }

static int close_all(void **state)
{
    close_machines(state);
    return tear_down(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_memory_stands_beside_that_of_the_cores),
        cmocka_unit_test(nodes_without_cores_are_listed),
        cmocka_unit_test(nodes_have_the_system_s_numbers),
        cmocka_unit_test(parts_share_out_the_cores),
        cmocka_unit_test(parts_zero_are_the_nodes),
        cmocka_unit_test(a_part_has_its_share_of_what_is_shared),
        cmocka_unit_test(more_parts_than_cores_have_to_be_asked_for),
        cmocka_unit_test(parts_that_share_a_core_lease_none),
        cmocka_unit_test(leases_of_different_parts_do_not_wait_for_each_other),
        cmocka_unit_test(written_pages_are_found_and_others_absent),
        cmocka_unit_test(a_run_lies_on_the_nodes_of_its_lease),
        cmocka_unit_test(binding_that_is_refused_is_a_note_unless_insisted_on),
        cmocka_unit_test(failed_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
