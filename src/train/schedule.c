/* SPDX-License-Identifier: Apache-2.0 */
/* Learning-rate schedules and their text form, which is parsed before the length of an epoch is known, its counts
 * turned into steps when it is. The rate is a pure function of the step, so that a resumed training needs no state of
 * the schedule. One call a training step; any thread. */
#include "graphi/schedule.h"

#include "base/status.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

static int64_t period_of(const graphi_schedule *s) { return s->period > 0 ? s->period : 1; }

/* 0 at the start, 1 at the end and after it. */
static double progress(const graphi_schedule *s, int64_t step)
{
    double done = (double)step / (double)period_of(s);
    return done < 1 ? done : 1;
}

static double rate_constant(const graphi_schedule *s, int64_t step) { return s->base; }

static double rate_step(const graphi_schedule *s, int64_t step)
{
    int64_t first = s->start > 0 ? s->start : period_of(s);
    int64_t drops = step < first ? 0 : 1 + (step - first) / period_of(s);
    return s->base * pow(s->gamma, (double)drops);
}

static double rate_exponential(const graphi_schedule *s, int64_t step)
{
    return s->base * pow(s->gamma, (double)step / (double)period_of(s));
}

static double rate_inverse(const graphi_schedule *s, int64_t step)
{
    return s->base * pow(1 + s->gamma * (double)step, -s->power);
}

static double rate_polynomial(const graphi_schedule *s, int64_t step)
{
    const double left = 1 - progress(s, step);
    return left > 0 ? s->floor + (s->base - s->floor) * pow(left, s->power) : s->floor; /* also to a power of 0 */
}

static double rate_cosine(const graphi_schedule *s, int64_t step)
{
    return s->floor + (s->base - s->floor) * (1 + cos(acos(-1.0) * progress(s, step))) / 2;
}

static double rate_multi_step(const graphi_schedule *s, int64_t step)
{
    int passed = 0;
    while (passed < s->marks && passed < GRAPHI_SCHEDULE_MARKS && s->mark[passed] <= step)
        passed++;
    return s->base * pow(s->gamma, passed);
}

static double rate_sigmoid(const graphi_schedule *s, int64_t step)
{
    return s->base / (1 + exp(s->gamma * (double)(step - period_of(s))));
}

/* The text form, a letter a part: g gamma (above 0), p power, f floor (both 0 or more), n period, s start (both
 * counts), m marks, as many as there are. Parts after '|' may be left out. */
static const struct kind {
    const char *name, *parts, *form;
    double (*rate)(const graphi_schedule *, int64_t);
} kinds[] = {
    [GRAPHI_SCHEDULE_CONSTANT] = {"constant", "|", "constant", rate_constant},
    [GRAPHI_SCHEDULE_STEP] = {"step", "gn|s", "step:GAMMA:PERIOD[:START]", rate_step},
    [GRAPHI_SCHEDULE_EXPONENTIAL] = {"exponential", "g|n", "exponential:GAMMA[:PERIOD]", rate_exponential},
    [GRAPHI_SCHEDULE_INVERSE] = {"inverse", "gp|", "inverse:GAMMA:POWER", rate_inverse},
    [GRAPHI_SCHEDULE_POLYNOMIAL] = {"polynomial", "n|pf", "polynomial:LENGTH[:POWER[:FLOOR]]", rate_polynomial},
    [GRAPHI_SCHEDULE_COSINE] = {"cosine", "n|f", "cosine:LENGTH[:FLOOR]", rate_cosine},
    [GRAPHI_SCHEDULE_MULTI_STEP] = {"multi-step", "gm|", "multi-step:GAMMA:MARK[:MARK...]", rate_multi_step},
    [GRAPHI_SCHEDULE_SIGMOID] = {"sigmoid", "gn|", "sigmoid:GAMMA:MIDDLE", rate_sigmoid},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* What Caffe's solvers call them, where that is another name. */
static const struct {
    const char *name;
    graphi_schedule_kind kind;
} others[] = {
    {"fixed", GRAPHI_SCHEDULE_CONSTANT},   {"exp", GRAPHI_SCHEDULE_EXPONENTIAL},
    {"inv", GRAPHI_SCHEDULE_INVERSE},      {"poly", GRAPHI_SCHEDULE_POLYNOMIAL},
    {"multistep", GRAPHI_SCHEDULE_MULTI_STEP},
};

/* KINDS: there is none of that name. */
static int find_kind(const char *name)
{
    int found = 0;
    while (found < KINDS && strcmp(kinds[found].name, name) != 0)
        found++;
    for (size_t i = 0; found == KINDS && i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].name, name) == 0)
            return (int)others[i].kind;
    return found;
}

double graphi_schedule_rate(const graphi_schedule *schedule, int64_t step)
{
    if (!schedule)
        return 0;
    if (step < 0)
        step = 0;
    unsigned kind = (unsigned)schedule->kind < KINDS ? (unsigned)schedule->kind : GRAPHI_SCHEDULE_CONSTANT;
    double rate = kinds[kind].rate(schedule, step);
    if (step < schedule->warmup)
        rate *= (double)(step + 1) / (double)schedule->warmup;
    return rate;
}

/* A count as it was written: steps, or epochs until their length is known. */
struct count {
    const char *part; /* its text; NULL: not given */
    double value;
    bool epochs;
};

struct parser {
    const char *whole;
    graphi_schedule result; /* but for its counts */
    struct count period, start, warmup, mark[GRAPHI_SCHEDULE_MARKS];
};

/* A finite number of at least `least` (above it, if `above`). */
static graphi_status parse_number(const struct parser *p, const char *part, double least, bool above, double *out)
{
    char *end;
    double value = text_number(part, &end);
    if (end == part || *end || !isfinite(value) || value < least || (above && value == least))
        return fail(GRAPHI_INVALID, "learning-rate schedule", "found \"%s\" in \"%s\", expected a number %s %g", part,
                    p->whole, above ? "above" : "of at least", least);
    *out = value;
    return GRAPHI_OK;
}

static graphi_status check_most(const struct parser *p, const char *part, double value)
{
    return value <= 0x1p53 ? GRAPHI_OK
                           : fail(GRAPHI_INVALID, "learning-rate schedule",
                                  "found \"%s\" in \"%s\", expected at most 2^53 steps", part, p->whole);
}

/* Above zero: of steps, whole, or of epochs with an e behind it. */
static graphi_status parse_count(const struct parser *p, const char *part, struct count *out)
{
    char digits[64];
    size_t length = strlen(part);
    struct count count = {.part = part, .epochs = length > 1 && part[length - 1] == 'e'};
    if (length >= sizeof digits)
        return fail(GRAPHI_INVALID, "learning-rate schedule", "found \"%s\", expected a count", part);
    memcpy(digits, part, length + 1);
    if (count.epochs)
        digits[length - 1] = 0;
    TRY(parse_number(p, digits, 0, true, &count.value));
    if (!count.epochs && count.value != floor(count.value))
        return fail(GRAPHI_INVALID, "learning-rate schedule",
                    "found \"%s\" in \"%s\", expected a whole number of steps", part, p->whole);
    TRY(check_most(p, part, count.value)); /* an epoch has a step at least */
    *out = count;
    return GRAPHI_OK;
}

static graphi_status fail_order(const struct parser *p, const struct count *mark)
{
    return fail(GRAPHI_INVALID, "learning-rate schedule",
                "found mark \"%s\" in \"%s\", expected one above the mark before", mark->part, p->whole);
}

/* Above the last one in the same unit; those in the other are compared when epochs have a length. */
static graphi_status parse_mark(struct parser *p, const char *part)
{
    const int marks = p->result.marks;
    struct count mark;
    TRY(parse_count(p, part, &mark));
    if (marks == GRAPHI_SCHEDULE_MARKS)
        return fail(GRAPHI_INVALID, "learning-rate schedule",
                    "found more than %d marks in \"%s\", expected at most as many", GRAPHI_SCHEDULE_MARKS, p->whole);
    int before = marks - 1;
    while (before >= 0 && p->mark[before].epochs != mark.epochs)
        before--;
    if (before >= 0 && mark.value <= p->mark[before].value)
        return fail_order(p, &mark);
    p->mark[p->result.marks++] = mark;
    return GRAPHI_OK;
}

static graphi_status parse_part(struct parser *p, char letter, const char *part)
{
    switch (letter) {
    case 'g': return parse_number(p, part, 0, true, &p->result.gamma);
    case 'p': return parse_number(p, part, 0, false, &p->result.power);
    case 'f': return parse_number(p, part, 0, false, &p->result.floor);
    case 'n': return parse_count(p, part, &p->period);
    case 's': return parse_count(p, part, &p->start);
    default: return parse_mark(p, part);
    }
}

/* `text` is NAME[:PART…], cut up in place. */
static graphi_status parse_kind(struct parser *p, char *text)
{
    char *rest = text, *name = strsep(&rest, ":");
    const int found = find_kind(name);
    if (found == KINDS)
        return fail(GRAPHI_INVALID, "learning-rate schedule",
                    "found \"%s\" in \"%s\", expected constant, step, exponential, "
                    "inverse, polynomial, cosine, multi-step or sigmoid",
                    name, p->whole);
    const struct kind *kind = &kinds[found];
    p->result.kind = (graphi_schedule_kind)found;
    const char *letter = kind->parts;
    bool optional = false, many = false;
    while (rest) {
        if (*letter == '|') {
            optional = true;
            letter++;
        }
        bool again = optional && many; /* marks repeat */
        if (!*letter && !again)
            return fail(GRAPHI_INVALID, "learning-rate schedule", "found more parts than wanted in \"%s\", expected %s",
                        p->whole, kind->form);
        many = again || *letter == 'm';
        TRY(parse_part(p, again ? 'm' : *letter, strsep(&rest, ":")));
        letter += !again;
    }
    if (*letter && *letter != '|' && !optional)
        return fail(GRAPHI_INVALID, "learning-rate schedule", "found fewer parts than wanted in \"%s\", expected %s",
                    p->whole, kind->form);
    return GRAPHI_OK;
}

/* *out stays where the count was not given. */
static graphi_status resolve_count(const struct parser *p, const struct count *count, int64_t steps_per_epoch,
                                   int64_t *out)
{
    if (!count->part)
        return GRAPHI_OK;
    if (count->epochs && steps_per_epoch <= 0)
        return fail(GRAPHI_INVALID, "learning-rate schedule",
                    "found \"%s\" in \"%s\" where the steps of an epoch are not known, "
                    "expected a count of steps",
                    count->part, p->whole);
    const double value = count->epochs ? count->value * (double)steps_per_epoch : count->value;
    TRY(check_most(p, count->part, value));
    *out = value < 1 ? 1 : (int64_t)(value + 0.5);
    return GRAPHI_OK;
}

static graphi_status resolve(const struct parser *p, int64_t steps_per_epoch, graphi_schedule *out)
{
    graphi_schedule s = p->result;
    TRY(resolve_count(p, &p->period, steps_per_epoch, &s.period));
    TRY(resolve_count(p, &p->start, steps_per_epoch, &s.start));
    TRY(resolve_count(p, &p->warmup, steps_per_epoch, &s.warmup));
    for (int i = 0; i < s.marks; i++) {
        TRY(resolve_count(p, &p->mark[i], steps_per_epoch, &s.mark[i]));
        if (i && s.mark[i] <= s.mark[i - 1])
            return fail_order(p, &p->mark[i]);
    }
    *out = s;
    return GRAPHI_OK;
}

graphi_status graphi_schedule_parse(const char *text, double base, int64_t steps_per_epoch, graphi_schedule *out)
{
    GIVEN(text);
    char copy[1024];
    text = text ? text : "";
    if (!isfinite(base) || base < 0)
        return fail(GRAPHI_INVALID, "learning rate", "found %g, expected a finite number of at least 0", base);
    if (strlen(text) >= sizeof copy)
        return fail(GRAPHI_INVALID, "learning-rate schedule", "found %zu characters, expected fewer than %zu",
                    strlen(text), sizeof copy);
    struct parser p = {.whole = text, .result = {.base = base, .gamma = 1, .power = 1, .period = 1}};
    char *rest = strcpy(copy, text);
    TRY(parse_kind(&p, strsep(&rest, ",")));
    if (rest && strncmp(rest, "warmup:", 7) != 0)
        return fail(GRAPHI_INVALID, "learning-rate schedule",
                    "found \"%s\" behind the comma of \"%s\", expected warmup:LENGTH", rest, text);
    if (rest)
        TRY(parse_count(&p, rest + 7, &p.warmup));
    return out ? resolve(&p, steps_per_epoch, out) : GRAPHI_OK;
}
