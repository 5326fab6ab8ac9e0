// Package crashtest kills a process at every point where its end could do harm, and checks
// that the next process recovers.
//
// The points are before and after each write to the store, and before and after the work
// of each tool and each background job. For each point, a child process runs a turn and
// is killed there with SIGKILL. Another child opens the store, resumes the turn and does
// the remaining work. Then nothing may be lost or done twice:
//
//   - every message and record whose commit was acknowledged is stored
//   - every call has one result, and every record is in a final state
//   - no tool and no job ran twice, unless it is idempotent
//   - a pending question is still pending, and a decision is kept with its scope
//   - the transcript equals that of a run without a kill, except for messages about an
//     interruption
//
// [RunApprovals] has other stories: a process is killed while a person is asked, other
// processes decide one after the other or at the same time, and still others resume the
// turn.
//
// [RunHooks] kills a process while hooks are running.
//
// The children run the test binary itself. A package that tests its store with one of these
// functions must call [Child] at the beginning of its TestMain.
package crashtest
