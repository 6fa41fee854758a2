/* SPDX-License-Identifier: BSD-3-Clause */
/* check_ring.c - the ring of slots: followed by hand for many passes, each step
 * finds its panel, and from the second pass on as few panels are copied as
 * there are beyond the slots. */
#include <check.h>

#include "formats/ring.h"
#include "tests/support/runner.h"

/* What the slots hold. */
typedef struct slots {
    int64_t panel[SPS_RING_SLOTS];
    int64_t copies;
} slots;

static void copy(slots *s, const sps_ring *r, int64_t step)
{
    s->panel[spsi_ring_slot(r, step)] = spsi_ring_panel(r, step);
    s->copies++;
}

/* One pass in the order of spmm.stream: the first copies, then each step and
 * the copy that its slot was released for. */
static void make_pass(slots *s, const sps_ring *r)
{
    for (int64_t t = r->held; t < r->slots && t < r->panels; t++)
        copy(s, r, t);
    for (int64_t t = 0; t < r->panels; t++) {
        ck_assert_int_eq(s->panel[spsi_ring_slot(r, t)],
                         spsi_ring_panel(r, t));
        if (t + r->slots < r->panels) copy(s, r, t + r->slots);
    }
}

START_TEST(every_step_finds_its_panel_and_few_are_copied)
{
    for (int n = 1; n <= SPS_RING_SLOTS; n++)
        for (int64_t panels = 1; panels < 40; panels++) {
            const int64_t kept = panels < n ? panels : n;
            slots s = { .copies = 0 };
            sps_ring r;

            spsi_ring_open(&r, panels, n);
            for (int pass = 0; pass < 7; pass++) {
                const int64_t before = s.copies;

                ck_assert_int_eq(r.backward, pass % 2);
                make_pass(&s, &r);
                ck_assert_int_eq(s.copies - before,
                                 pass == 0 ? panels : panels - kept);
                spsi_ring_turn(&r);
            }
        }
}
END_TEST

START_TEST(a_ring_that_forgot_copies_all_panels)
{
    slots s = { .copies = 0 };
    sps_ring r;

    spsi_ring_open(&r, 9, 4);
    make_pass(&s, &r);
    spsi_ring_turn(&r);
    for (int i = 0; i < SPS_RING_SLOTS; i++) s.panel[i] = -1;
    spsi_ring_forget(&r);
    make_pass(&s, &r);
    ck_assert_int_eq(s.copies, 18);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(every_step_finds_its_panel_and_few_are_copied),
    RUNNER_TEST(a_ring_that_forgot_copies_all_panels),
};
RUNNER_MAIN("ring", tests)
