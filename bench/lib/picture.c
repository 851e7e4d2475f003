/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures as SVG. */
#include "picture.h"

#include <sys/stat.h>

enum { LEFT = 60, TOP = 30, WIDE = 560, HIGH = 270, LEGEND = 20, LINES = 4 };
static const char *const colours[LINES] = {"#2f6f9f", "#c0622f", "#3d8f4f", "#7b5ea7"};

static void text_at(const struct picture *p, const char *attributes, int x, int y, const char *text)
{
    enum { MOST = 200 };
    fprintf(p->file, "<text x='%d' y='%d'%s>", x, y, attributes);
    result_escape(p->file, text, MOST);
    fprintf(p->file, "</text>\n");
}

graphi_status picture_open_plain(struct picture *p, struct bench *bench, const char *name, int width, int height)
{
    const char *folder = bench->options.out;
    *p = (struct picture){.bench = bench};
    if (!folder)
        return GRAPHI_OK;
    mkdir(folder, 0777);
    snprintf(p->path, sizeof p->path, "%s/%s.svg", folder, name);
    p->file = fopen(p->path, "w");
    if (!p->file)
        return report_error(GRAPHI_IO, p->path, "found no way to write it, expected a folder with room");
    fprintf(p->file,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' font-family='sans-serif' font-size='12'>\n"
            "<rect width='100%%' height='100%%' fill='white'/>\n",
            width, height);
    return GRAPHI_OK;
}

graphi_status picture_open(struct picture *p, struct bench *bench, const char *name, const char *title,
                           const char *x_name, const char *y_name, double most_x, double most_y)
{
    graphi_status status = picture_open_plain(p, bench, name, LEFT + WIDE + 40, TOP + HIGH + 30 + LINES * LEGEND);
    p->most_x = most_x;
    p->most_y = most_y;
    if (!p->file)
        return status;
    int low = TOP + HIGH, right = LEFT + WIDE;
    text_at(p, "", LEFT, 18, title);
    fprintf(p->file,
            "<path d='M%d %dV%dH%d' fill='none' stroke='#888'/>\n"
            "<text x='52' y='%d' text-anchor='end'>%.4g</text><text x='52' y='%d' text-anchor='end'>0</text>"
            "<text x='%d' y='%d' text-anchor='end'>%.4g %s</text><text x='%d' y='%d'>%s</text>\n",
            LEFT, TOP, low, right, TOP + 4, most_y, low + 4, right, low + 18, most_x, x_name, LEFT + 8,
            TOP + 12, y_name);
    return GRAPHI_OK;
}

static double across(const struct picture *p, double x) { return LEFT + WIDE * x / p->most_x; }
static double down(const struct picture *p, double y) { return TOP + HIGH * (1 - y / p->most_y); }

void picture_line(struct picture *p, const double *x, const double *y, int count, int colour, double width)
{
    if (!p->file)
        return;
    fprintf(p->file, "<polyline fill='none' stroke='%s' stroke-width='%.1f' points='", colours[colour], width);
    for (int i = 0; i < count; i++)
        fprintf(p->file, "%.1f,%.1f ", across(p, x[i]), down(p, y[i]));
    fprintf(p->file, "'/>\n");
}

void picture_point(struct picture *p, double x, double y, int colour)
{
    if (p->file)
        fprintf(p->file, "<circle cx='%.1f' cy='%.1f' r='4' fill='%s'/>\n", across(p, x), down(p, y), colours[colour]);
}

void picture_name(struct picture *p, const char *name, int colour)
{
    char fill[40];
    snprintf(fill, sizeof fill, " fill='%s'", colours[colour]);
    if (p->file)
        text_at(p, fill, LEFT, TOP + HIGH + 40 + LEGEND * p->named++, name);
}

void picture_box(struct picture *p, int x, int y, int width, int height, double hue, const char *text)
{
    if (!p->file)
        return;
    fprintf(p->file, "<rect x='%d' y='%d' width='%d' height='%d' fill='hsl(%.0f,70%%,72%%)' stroke='white'/>", x, y,
            width, height, hue);
    text_at(p, " text-anchor='middle' font-size='10'", x + width / 2, y + height / 2 + 4, text);
}

void picture_text(struct picture *p, int x, int y, const char *text)
{
    if (p->file)
        text_at(p, "", x, y, text);
}

graphi_status picture_close(struct picture *p, graphi_status status)
{
    if (!p->file)
        return status;
    fprintf(p->file, "</svg>\n");
    bool failed = ferror(p->file);
    failed = fclose(p->file) != 0 || failed;
    p->file = NULL;
    if (failed && !status)
        return report_error(GRAPHI_IO, p->path, "found a full disk, expected the picture written");
    if (!status)
        result_file(&p->bench->result, p->path);
    return status;
}
