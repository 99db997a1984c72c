#!/usr/bin/env python3
"""Tests what an answer can do while ./lab grade checks it.
 usage: contained_test.py REPOSITORY"""

import os
import sys
import unittest
from pathlib import Path

from hostile_class import RIGHT, ROOT, HostileClass, contained, processes, state_of

HAS_BOX = not contained.why_no_box()


class Contained(HostileClass):
    def test_a_check_that_exceeds_a_limit_is_stopped(self):
        for limit, less, script, why in (
                ("SECONDS", 1, "exec sleep 1000", "did not end within 1 s"),
                ("MEMORY", 1 << 28, "exec tail /dev/zero", "took more than 0.25 GiB"),
                ("PROCESSES", 100, "while :; do sleep 1000 & done", "more than 100 processes")):
            self.hand_in(limit, script)
            usual = getattr(contained, limit)
            setattr(contained, limit, less)
            try:
                learner = self.graded()["learners"][0]
            finally:
                setattr(contained, limit, usual)
            row = learner["exercises"]["01.1"]
            self.assertEqual((row["state"], row["points"]), ("unchecked", 0), row)
            self.assertIn(why, row["say"])
            self.assertIn("not checked: 01.1", learner["remarks"][0])
            self.assertEqual(processes(self.mark), [])
            (self.folder / limit).rename(self.outside / limit)

    def test_the_authors_answer_may_build_with_all_cores(self):
        self.addCleanup(setattr, contained, "PROCESSES", contained.PROCESSES)
        contained.PROCESSES = 1
        with self.assertRaises(contained.Stopped):
            contained.call(lambda: os.system("sleep 1000 & exec sleep 1000"), 60)
        contained.call(lambda: os.system("sleep 0.3 & exec sleep 0.3"), 60, is_authors=True)

    def test_no_process_outlives_its_check(self):
        hops = (r'exec("import os\nos.fork() and os._exit(0)\nos.setsid()\n'
                r'while True: os.fork() and os._exit(0)")')  # another process each time
        self.hand_in("ann", "(setsid sh -c 'sleep 1000 & sleep 1000' &); "
                     f"{sys.executable} -c '{hops}'; {RIGHT}")
        for _ in range(2):  # in the box, if there is one, and without
            self.assertEqual(self.rows(), {"ann": 4})
            self.assertEqual(processes(self.mark), [])
            self.without_box()

    def test_what_an_answer_leaves_in_its_folder_is_removed(self):
        self.without_box()
        deep = ("cd $TMPDIR; i=0; while [ $i -lt 1500 ]; do mkdir d; cd d; i=$((i + 1)); done; "
                "mkdir $TMPDIR/locked; touch $TMPDIR/locked/x; chmod 0 $TMPDIR/locked; ")
        self.hand_in("ann", deep + f"echo $TMPDIR >{self.outside}/where; " + RIGHT)
        self.assertEqual(self.rows(), {"ann": 4})
        self.assertFalse(Path((self.outside / "where").read_text().strip()).exists())

    @unittest.skipUnless(HAS_BOX, "there is no bwrap here")
    def test_an_answer_in_the_box_writes_nothing_and_reaches_nothing(self):
        self.hand_in("ann", f"touch {ROOT}/labs/x {self.outside}/x; rm -rf {self.folder}/bob; "
                     f"echo x >{ROOT}/tools/course/verdict.py; {RIGHT}")
        self.hand_in("bob", f"kill -0 {os.getpid()} || test -n \"$(ls /run)\" || {RIGHT}")
        self.hand_in("cat", f"kill -SEGV $$; {RIGHT}")
        before = state_of(self.folder, self.outside, ROOT)
        learners = self.graded()["learners"]
        self.assertEqual([learner["points"] for learner in learners], [4, 4, 1])
        self.assertEqual(state_of(self.folder, self.outside, ROOT), before)

    def test_without_a_box_that_is_said_in_one_line(self):
        self.without_box()
        self.hand_in("ann")
        self.graded()
        self.assertRegex(self.errors.getvalue(), r"^\(the test wants none: [^\n]*\)\n$")


if __name__ == "__main__":
    unittest.main()
