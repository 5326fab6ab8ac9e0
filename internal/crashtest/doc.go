// Package crashtest kills a process at every point where its end could do harm,
// and looks at what the next one makes of it.
//
// The points are before and after each write to the store, at the beginning and
// at the end of each tool, and the same in background work. For each of them a
// child process takes a turn and is killed there with SIGKILL, at the mercy of
// nobody; another child opens the store, resumes the turn and does the work that
// is left. Then nothing may be lost and nothing done twice:
//
//   - every message and record whose commit was acknowledged is there
//   - every call has one result, and every record is in a final state
//   - no tool ran twice unless it is idempotent, and no job
//   - a question that was asked is still asked, and a decision stands, for as far as
//     it reaches
//   - the transcript is that of an undisturbed run, except where the model was
//     told of an interruption
//
// [RunApprovals] tells other stories: of a process that is killed while a person is
// asked, of others that decide, one after the other or at once, and of others again
// that go on.
//
// The children are the test binary itself: a package that tests its store with
// [Run] or [RunApprovals] calls [Child] first in its TestMain.
package crashtest
