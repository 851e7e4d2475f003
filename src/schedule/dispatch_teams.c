/* SPDX-License-Identifier: Apache-2.0 */
/* Formed teams: the policy chooses a task, its width and what its team is like in one decision; here it gets its
 * workers. Who leads it is any of them, the worker at hand first. Used by the scheduling step alone. */
#include "schedule/scheduler.h"

#include <string.h>

/* Teams have a row of members for each leader: megabytes on machines of a thousand cores, of which a page becomes
 * resident where others than neighbours are led. */
static bool allocate(struct schedule *s)
{
    struct formed_teams *f = &s->formed;
    const size_t tasks = (size_t)s->tasks->count + 1, workers = (size_t)(s->workers + s->siblings);
    uint16_t *rows = schedule_alloc_raw(s, workers * workers, sizeof *rows);
    f->room = schedule_alloc(s, 2 * tasks, sizeof *f->room); /* once before the list, and once for its items */
    f->teams = schedule_alloc(s, workers, sizeof *f->teams);
    f->leaders = schedule_alloc(s, workers, sizeof *f->leaders);
    f->scratch = schedule_alloc(s, workers, sizeof *f->scratch);
    if (!f->room || !rows || !f->teams || !f->leaders || !f->scratch)
        return false;
    for (size_t i = 0; i < workers; i++)
        s->executors[i].row = rows + i * workers;
    return true;
}

static void begin(struct schedule *s)
{
    struct formed_teams *f = &s->formed;
    const int tasks = s->tasks->count + 1;
    f->count = 0;
    f->list = (struct ready_list){.items = f->room + tasks, .before = tasks};
    for (int i = 0; i < s->slots_count; i++)
        f->teams[i].task = -1;
}

static void ready(struct schedule *s, struct ready item)
{
    ready_list_insert(&s->formed.list, item);
}

static void ended(struct schedule *s, int index, const struct completion *done)
{
    struct formed_teams *f = &s->formed;
    struct formed_team *team = &f->teams[index];
    const uint16_t *members = s->executors[index].members;
    if (team->start >= 0)
        bitmap_set_range(&s->idle, team->start, team->width);
    else if (members[0] < s->workers) /* siblings are never idle: strategy 4 alone knows them */
        bitmap_set_all(&s->idle, members, team->width);
    int last = f->leaders[--f->count];
    f->leaders[team->position] = last;
    f->teams[last].position = team->position;
    struct seat seat = {(uint16_t)index, team->width, team->spread};
    if (s->policy->finished && done->ran) /* nothing where another task's failure came first: it took no time */
        s->policy->finished(s, done->task, seat, (double)(done->end_ns - team->started));
    team->task = -1;
}

bool step_one_a_tile(struct schedule *s, int width)
{
    const struct machine_core *core = s->machine->core;
    int tile = -1, count = 0;
    for (int worker = bitmap_first(&s->idle); worker >= 0 && count < width;
         worker = bitmap_next(&s->idle, worker + 1, s->workers)) {
        if (!core || core[worker].tile != tile)
            s->formed.scratch[count++] = (uint16_t)worker;
        tile = core ? core[worker].tile : -1;
    }
    return count == width;
}

/* Workers of a free-width group. What a team of a thousand costs is going through its members: neighbours are known by
 * the first. */
struct group {
    const uint16_t *members; /* NULL: there are not so many */
    int start;               /* of neighbours; -1: any */
};

static struct group neighbours(const struct schedule *s, int start)
{
    return (struct group){s->every + start, start};
}

/* Neighbours if there are, else any idle ones; one a tile for `spread`, which is false afterwards where there are not
 * so many. */
static struct group choose_members(struct schedule *s, struct decision *d)
{
    const struct group none = {NULL, -1}, listed = {s->formed.scratch, -1};
    int width = d->width, count = 0;
    if (width == 1 && !d->sibling && s->self >= 0 && bitmap_test(&s->idle, s->self))
        return neighbours(s, s->self);
    if (d->sibling) {
        for (int i = s->workers; i < s->workers + s->siblings && count < width; i++)
            if (s->formed.teams[i].task < 0)
                s->formed.scratch[count++] = (uint16_t)i;
        return count == width ? listed : none;
    }
    if (s->idle.count < width)
        return none;
    d->spread = d->spread && (d->seated || step_one_a_tile(s, width));
    if (d->spread)
        return listed;
    int start = d->aligned ? bitmap_run(&s->idle, width, width, s->workers) : bitmap_neighbours(&s->idle, width);
    if (start >= 0)
        return neighbours(s, start);
    if (d->aligned)
        return none;
    bitmap_list(&s->idle, width, s->formed.scratch);
    return listed;
}

static int place_of_self(const struct schedule *s, const struct group *group, int width)
{
    int at = 0;
    if (group->start >= 0)
        return s->self >= group->start && s->self < group->start + width ? s->self - group->start : 0;
    while (at < width && group->members[at] != s->self)
        at++;
    return at < width ? at : 0;
}

/* The worker at hand leads if it is a member: no message for its own share; the order of neighbours is kept, rotated.
 * Neighbours led by their first, most teams by far, are listed in `every` already: nothing is written for them. */
static int lead_by_self(struct schedule *s, const struct group *group, int width)
{
    const uint16_t *members = group->members;
    int at = place_of_self(s, group, width), leader = members[at];
    struct executor *x = &s->executors[leader];
    if (group->start >= 0 && !at) {
        x->members = members;
        return leader;
    }
    memcpy(x->row, members + at, (size_t)(width - at) * sizeof *members);
    memcpy(x->row + width - at, members, (size_t)at * sizeof *members);
    x->members = x->row;
    return leader;
}

static void occupy(struct schedule *s, const struct group *group, const struct decision *d)
{
    if (group->start >= 0)
        bitmap_clear_range(&s->idle, group->start, d->width);
    else if (!d->sibling)
        bitmap_clear_all(&s->idle, group->members, d->width);
}

static bool dispatch_group(struct schedule *s)
{
    struct decision d = {.aligned = false};
    if (!s->formed.list.count || (step_little_work(s) && s->slots[s->self].outstanding) || !s->policy->decide(s, &d))
        return false;
    const struct group group = choose_members(s, &d);
    if (!group.members) { /* not the workers it wants: wait for them */
        ready_list_insert(&s->formed.list, d.item);
        return false;
    }
    int leader = lead_by_self(s, &group, d.width);
    occupy(s, &group, &d);
    const struct cost_curve *curve = &s->tasks->curves[s->tasks->curve_of[d.item.task]];
    double ns = d.ns > 0 ? d.ns : s->policy->timed ? curve_mode_ns(curve, d.width, d.spread) : 0;
    s->formed.teams[leader] = (struct formed_team){.task = d.item.task,
                                                   .width = (uint16_t)d.width,
                                                   .position = (uint16_t)s->formed.count,
                                                   .start = (int16_t)group.start,
                                                   .spread = d.spread,
                                                   .started = s->now,
                                                   .predicted_end = (double)s->now + ns};
    s->formed.leaders[s->formed.count++] = leader;
    s->slots[leader].outstanding = 1;
    step_placed(s, leader, d.item.task, d.width);
    step_send(s, leader, (struct assignment){d.item.task, d.item.task, (uint16_t)d.width, d.spread});
    return true;
}

static void dispatch(struct schedule *s)
{
    while (dispatch_group(s)) {
    }
}

const struct dispatcher dispatch_teams = {allocate, begin, ready, ended, dispatch};
