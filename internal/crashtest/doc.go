// Package crashtest kills a process at every point where its end could do harm, and
// checks that the next process recovers.
//
// The points are before and after each write to the store, at the beginning and at
// the end of each tool, and the same in background work. For each point a child
// process runs a turn and is killed there with SIGKILL; another child opens the
// store, resumes the turn and does the remaining work. Then nothing must be lost and
// nothing done twice:
//
//   - every message and record whose commit was acknowledged is there
//   - every call has one result, and every record is in a final state
//   - no tool ran twice unless it is idempotent, and no job
//   - a pending question is still pending, and a decision is kept with its
//     scope
//   - the transcript equals that of an undisturbed run, except for messages
//     about an interruption
//
// [RunApprovals] has other stories: a process is killed while a person is asked,
// other processes decide, one after the other or at once, and others resume the
// turn.
//
// The children are the test binary itself: a package that tests its store with [Run]
// or [RunApprovals] calls [Child] first in its TestMain.
package crashtest
