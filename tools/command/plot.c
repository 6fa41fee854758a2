/* SPDX-License-Identifier: BSD-3-Clause */
/* plot.c - draws the history of the residuals as SVG: worst, median and best
 * column of every iteration on a logarithmic axis, with the tolerance; for
 * eigenpairs one curve for each, in their order.  Long histories are drawn in
 * steps, each with its largest value; of many pairs only some are drawn. */
#include "tools/command/job.h"

#include <math.h>
#include <string.h>

enum { WIDE = 760, HIGH = 460, LEFT = 74, RIGHT = 100, TOP = 52, BOTTOM = 52,
       STEPS = 1200, PAIRS = 48 };

/* Curves are numbered: 0 worst, 1 median, 2 best, then one for each column. */
enum { FIRST_COLUMN = 3 };

typedef struct frame {
    FILE *f;
    const progress_point *point;
    const float *column;         /* count x columns values, or NULL */
    int columns;
    int count, last;             /* number of points; last iteration */
    double low, high;            /* powers of ten at the ends of the vertical
                                    axis */
} frame;

static double horizontal(const frame *p, int iteration)
{
    return LEFT + (double)(WIDE - LEFT - RIGHT) * iteration /
                  (p->last > 0 ? p->last : 1);
}

/* Returns the vertical position of x; zero and NaN are at the lower edge. */
static double vertical(const frame *p, double x)
{
    double t = x > 0 ? log10(x) : p->low;

    if (!(t > p->low)) t = p->low;
    if (t > p->high) t = p->high;
    return TOP + (HIGH - TOP - BOTTOM) * (p->high - t) / (p->high - p->low);
}

static double value(const frame *p, int i, int which)
{
    const progress_point *q = p->point + i;

    if (which >= FIRST_COLUMN)
        return p->column[(size_t)i * (size_t)p->columns +
                         (size_t)(which - FIRST_COLUMN)];
    return which == 0 ? q->worst : which == 1 ? q->median : q->best;
}

static void span(frame *p, double target)
{
    double low = INFINITY, high = 0;

    for (int i = 0; i < p->count; i++) {
        if (p->point[i].best > 0) low = fmin(low, p->point[i].best);
        if (isfinite(p->point[i].worst)) high = fmax(high, p->point[i].worst);
    }
    if (target > 0) low = fmin(low, target), high = fmax(high, target);
    if (!(high > 0)) high = 1;
    if (!(low <= high)) low = high;
    p->high = ceil(log10(high));
    p->low = fmax(floor(log10(low)), p->high - 24);
    if (p->low >= p->high) p->low = p->high - 1;
}

static void escape(FILE *f, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '<') fputs("&lt;", f);
        else if (c == '>') fputs("&gt;", f);
        else if (c == '&') fputs("&amp;", f);
        else if (c == '"') fputs("&quot;", f);
        else if (c < 0x20 || c >= 0x7f) fputc('?', f);
        else fputc(c, f);
    }
}

/* Returns the distance of tick marks: 1, 2 or 5 times a power of ten, for about
 * eight marks. */
static int stride(int last)
{
    static const int factor[] = {1, 2, 5};
    int power = 1;

    for (;;) {
        for (int i = 0; i < 3; i++)
            if (last / (power * factor[i]) <= 8) return power * factor[i];
        power *= 10;
    }
}

static void axes(const frame *p)
{
    int each = p->high - p->low > 12 ? 2 : 1, step = stride(p->last);
    double right = WIDE - RIGHT, bottom = HIGH - BOTTOM;

    for (int d = (int)p->low; d <= (int)p->high; d += each) {
        double y = vertical(p, pow(10, d));
        fprintf(p->f, "<path class='grid' d='M%d %.1fH%.1f'/>"
                      "<text x='%d' y='%.1f' text-anchor='end'>10"
                      "<tspan dy='-5' font-size='9'>%d</tspan></text>\n",
                LEFT, y, right, LEFT - 8, y + 4, d);
    }
    for (int i = 0; i <= p->last; i += step) {
        double x = horizontal(p, i);
        fprintf(p->f, "<path class='grid' d='M%.1f %dV%.1f'/>"
                      "<text x='%.1f' y='%.1f' text-anchor='middle'>%d"
                      "</text>\n", x, TOP, bottom, x, bottom + 18, i);
    }
    fprintf(p->f, "<path class='axis' d='M%d %dV%.1fH%.1f'/>\n", LEFT, TOP,
            bottom, right);
    fprintf(p->f, "<text x='%.1f' y='%d' text-anchor='middle'>iteration"
                  "</text>\n", (LEFT + right) / 2, HIGH - 12);
    fprintf(p->f, "<text transform='translate(18 %.1f) rotate(-90)' "
                  "text-anchor='middle'>residual, relative</text>\n",
            (TOP + bottom) / 2);
}

/* Draws a curve.  Of `each` consecutive points only the largest is drawn, so
 * that peaks remain visible.  paint: attributes of the path; *label: height of
 * the last point. */
static void curve(const frame *p, int which, const char *paint, double *label)
{
    int each = p->count / STEPS + 1;

    fprintf(p->f, "<path %s d='", paint);
    for (int i = 0; i < p->count; i += each) {
        int at = i;
        for (int j = i; j < i + each && j < p->count; j++)
            if (value(p, j, which) > value(p, at, which)) at = j;
        if (i + each >= p->count) at = p->count - 1;
        fprintf(p->f, "%c%.1f %.1f", i ? 'L' : 'M',
                horizontal(p, p->point[at].iteration),
                vertical(p, value(p, at, which)));
    }
    fprintf(p->f, "'/>\n");
    *label = p->count ? vertical(p, value(p, p->count - 1, which)) : TOP;
}

/* Writes the colour of pair j: blue for the first pair, red for the last. */
static void colour(const frame *p, int j, char *text, size_t size)
{
    double t = p->columns > 1 ? (double)j / (p->columns - 1) : 0;

    snprintf(text, size, "rgb(%.0f,%.0f,%.0f)", 31 + 161 * t, 95 - 38 * t,
             168 - 125 * t);
}

static void pair_name(const frame *p, int j, double y)
{
    char paint[32];

    colour(p, j, paint, sizeof paint);
    fprintf(p->f, "<text x='%d' y='%.1f' style='fill:%s'>pair %d</text>\n",
            WIDE - RIGHT + 8, y + 4, paint, j + 1);
}

static void pairs(const frame *p)
{
    int step = (p->columns + PAIRS - 1) / PAIRS, last = 0;
    double first = TOP, end = TOP;
    char paint[32], path[80];

    for (int j = 0; j < p->columns; j += step) {
        colour(p, j, paint, sizeof paint);
        snprintf(path, sizeof path, "class='pair' stroke='%s'", paint);
        curve(p, FIRST_COLUMN + j, path, j ? &end : &first);
        last = j;
    }
    if (fabs(end - first) < 15) end = first < TOP + 15 ? first + 15
                                                       : first - 15;
    pair_name(p, 0, first);
    if (last) pair_name(p, last, end);
}

/* Draws the three curves and their names at the right ends, moved apart if they
 * would overlap. */
static void curves(const frame *p)
{
    static const char *const name[] = {"worst", "median", "best"};
    static const char *const paint[] = {"class='worst'", "class='median'",
                                        "class='best'"};
    double y[3];

    for (int i = 2; i >= 0; i--) curve(p, i, paint[i], y + i);
    for (int i = 1; i < 3; i++)
        if (y[i] < y[i - 1] + 15) y[i] = y[i - 1] + 15;
    double over = fmax(0, y[2] - (HIGH - BOTTOM));
    for (int i = 0; i < 3; i++)
        fprintf(p->f, "<text class='t%s' x='%d' y='%.1f'>%s</text>\n",
                name[i], WIDE - RIGHT + 8, y[i] - over + 4, name[i]);
}

static void tolerance(const frame *p, double target)
{
    double y = vertical(p, target);

    if (!(target > 0)) return;
    fprintf(p->f, "<path class='target' d='M%d %.1fH%d'/>"
                  "<text x='%d' y='%.1f' fill='#555'>tolerance %.3g</text>\n",
            LEFT, y, WIDE - RIGHT, LEFT + 8, y - 5, target);
}

static const char style[] =
    "<style>text{font:12px sans-serif;fill:#222}"
    ".grid{stroke:#e4e4e4;fill:none}.axis{stroke:#222;fill:none}"
    ".pair{fill:none;stroke-width:1.2;stroke-linejoin:round}"
    ".worst,.median,.best{fill:none;stroke-width:1.8;stroke-linejoin:round}"
    ".worst{stroke:#c0392b}.median{stroke:#1f5fa8}.best{stroke:#2e8b57}"
    ".tworst{fill:#c0392b}.tmedian{fill:#1f5fa8}.tbest{fill:#2e8b57}"
    ".target{stroke:#555;stroke-dasharray:6 4;fill:none}</style>\n";

static void drawing(const job *j, frame *p)
{
    const char *name = strrchr(j->opt.file.A, '/');

    fprintf(p->f, "<svg xmlns='http://www.w3.org/2000/svg' "
                  "viewBox='0 0 %d %d' width='%d' height='%d' role='img'>\n%s"
                  "<rect width='%d' height='%d' fill='#fff'/>\n",
            WIDE, HIGH, WIDE, HIGH, style, WIDE, HIGH);
    fprintf(p->f, "<text x='%d' y='24' style='font-size:15px'>", LEFT);
    escape(p->f, name ? name + 1 : j->opt.file.A);
    fprintf(p->f, ", %d %s%s</text>\n<text x='%d' y='42' fill='#555'>",
            j->k, j->opt.eigs ? "eigenpair" : "right-hand side",
            j->k == 1 ? "" : "s", LEFT);
    if (j->done.solved)
        fprintf(p->f, "%s, preconditioner %s: %s after %d iterations",
                j->result.solver, j->result.precond,
                job_stop_string(j), j->result.iterations);
    fprintf(p->f, "</text>\n");
    axes(p);
    tolerance(p, j->progress.target);
    if (p->column) pairs(p);
    else curves(p);
    fprintf(p->f, "</svg>\n");
}

int plot_write(const job *j, const char *path, char *error, size_t size)
{
    frame p = {.point = j->progress.point, .count = j->progress.count,
               .column = j->progress.column, .columns = j->progress.columns};
    output out;

    if (!output_open(&out, path, error, size)) return EXIT_OUTPUT;
    p.f = out.f;
    if (p.count) p.last = p.point[p.count - 1].iteration;
    span(&p, j->progress.target);
    drawing(j, &p);
    return output_close(&out, error, size) ? EXIT_CONVERGED : EXIT_OUTPUT;
}
