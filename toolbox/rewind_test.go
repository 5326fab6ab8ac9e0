//go:build unix

package toolbox_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/toolbox"
)

// rewindKit is an agent with snapshots, whose model makes the calls of a script.
type rewindKit struct {
	*kit

	snaps   *toolbox.Snapshots
	kept    string // the directory of the snapshots
	agent   *belay.Agent
	store   belay.Store
	session string
	states  []map[string]string // the project after each turn; the first is before the first turn
	lasts   []int64             // the number of the last message after each turn
}

// newRewindKit makes an agent for these turns. Each turn has the calls of one response.
func newRewindKit(t *testing.T, opts *toolbox.SnapshotOptions, turns ...[]scripted.Call) *rewindKit {
	t.Helper()
	k := &rewindKit{kit: newKit(t, nil), kept: filepath.Join(t.TempDir(), "kept"), session: "s"}
	if opts == nil {
		opts = &toolbox.SnapshotOptions{}
	}
	opts.Failed = func(err error) { t.Errorf("a snapshot failed: %v", err) }
	k.snaps = toolbox.NewSnapshots(k.kept, opts)
	t.Cleanup(func() {
		if err := k.snaps.Close(); err != nil {
			t.Error(err)
		}
	})
	var steps []scripted.Step
	for _, calls := range turns {
		steps = append(steps, scripted.Step{Calls: calls}, scripted.Step{Text: "done"})
	}
	k.store = memstore.New(nil)
	var err error
	k.agent, err = belay.New(scripted.New(steps, nil), &belay.Options{
		Store: k.store, Authorizer: permit.Off(),
		Extensions: []belay.Extension{toolbox.New(openRoot(t, k.dir), &toolbox.Options{Snapshots: k.snaps})},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.agent.Close(t.Context()) })
	return k
}

// run runs all turns, and remembers the project after each.
func (k *rewindKit) run(turns int) {
	k.t.Helper()
	k.states, k.lasts = []map[string]string{k.tree()}, []int64{0}
	for range turns {
		k.turn()
	}
}

func (k *rewindKit) turn() {
	k.t.Helper()
	turn, err := k.agent.Session(k.session).Turn(k.t.Context(), "go on")
	if err != nil || turn.Reason != belay.EndTurn {
		k.t.Fatalf("turn = %+v, %v", turn, err)
	}
	var last int64
	for m, err := range k.agent.Session(k.session).Messages(k.t.Context()) {
		if err != nil {
			k.t.Fatal(err)
		}
		for _, p := range m.Parts {
			if p.Result != nil && p.Result.IsError {
				k.t.Fatalf("a call failed: %s", p.Result.Text)
			}
		}
		last = m.Seq
	}
	k.states, k.lasts = append(k.states, k.tree()), append(k.lasts, last)
}

// tree returns the project: each path with its kind, permissions and content.
func (k *rewindKit) tree() map[string]string {
	k.t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(k.dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == k.dir {
			return err
		}
		rel, err := filepath.Rel(k.dir, name)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		var text string
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			text, err = os.Readlink(name)
		case e.Type().IsRegular():
			var data []byte
			data, err = os.ReadFile(name)
			text = fmt.Sprintf("%s %q", info.Mode(), data)
		default:
			text = "directory"
		}
		all[rel] = text
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return all
}

func (k *rewindKit) plan(at int64) *toolbox.Rewind {
	k.t.Helper()
	plan, err := k.snaps.Plan(k.t.Context(), k.store, k.session, at)
	if err != nil {
		k.t.Fatal(err)
	}
	return plan
}

func (k *rewindKit) rewind(plan *toolbox.Rewind, opts *toolbox.RewindOptions) *belay.Session {
	k.t.Helper()
	session, err := k.snaps.Rewind(k.t.Context(), k.agent, plan, opts)
	if err != nil {
		k.t.Fatal(err)
	}
	return session
}

func (k *rewindKit) same(what string, want map[string]string) {
	k.t.Helper()
	if d := cmp.Diff(want, k.tree()); d != "" {
		k.t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func shellCall(command string) scripted.Call {
	return call("shell", fmt.Sprintf(`{"command": %q}`, command))
}

// everyChange are turns that create, change, move and delete files in every way.
var everyChange = [][]scripted.Call{
	{call("write", `{"path": "new/deep/a.txt", "content": "one\n"}`), call("read", `{"path": "old.txt"}`), call("edit", `{"path": "old.txt", "old_string": "old", "new_string": "changed"}`)},
	{shellCall("rm gone.txt && mv moved.txt dir/moved.txt && chmod 755 script.sh && ln -s old.txt link && mkdir empty && echo more >> new/deep/a.txt")},
	{call("read", `{"path": "old.txt"}`), call("write", `{"path": "old.txt", "content": "third\n"}`), shellCall("rm -r dir new && ln -sf gone.txt link && printf '\\0\\1' > binary")},
}

func (k *rewindKit) putEverything() {
	for name, content := range map[string]string{"old.txt": "old\n", "gone.txt": "gone\n", "moved.txt": "moved\n", "dir/there.txt": "there\n", "script.sh": "echo\n"} {
		k.put(name, content)
	}
}

// A rewind to any message brings back the files as they were then: their content, their
// permissions, links and directories.
//
// SPEC U-02
func TestRewindRestoresTheFilesOfAnyMessage(t *testing.T) {
	t.Parallel()
	for to := range everyChange {
		t.Run(fmt.Sprintf("after turn %d", to), func(t *testing.T) {
			t.Parallel()
			k := newRewindKit(t, nil, everyChange...)
			k.putEverything()
			k.run(len(everyChange))
			plan := k.plan(k.lasts[to])
			if c := plan.Conflicts(); len(c) > 0 {
				t.Fatalf("conflicts = %+v, want none", c)
			}
			session := k.rewind(plan, &toolbox.RewindOptions{As: "again"})
			k.same("the files after the rewind", k.states[to])
			count := int64(0)
			for _, err := range session.Messages(t.Context()) {
				if err == nil {
					count++
				}
			}
			if session.ID() != "again" || count != k.lasts[to] {
				t.Errorf("session %q has %d messages, want again with %d", session.ID(), count, k.lasts[to])
			}
			k.rewind(k.plan(k.lasts[len(everyChange)]), nil) // to the last message of the old session
			k.same("the files after undoing the rewind", k.states[len(everyChange)])
		})
	}
}

// The new session of a rewind can be rewound further, with the snapshots of the old one.
func TestRewindOfARewoundSession(t *testing.T) {
	t.Parallel()
	k := newRewindKit(t, nil, everyChange...)
	k.putEverything()
	k.run(len(everyChange))
	k.rewind(k.plan(k.lasts[2]), &toolbox.RewindOptions{As: "second"})
	k.session = "second"
	k.rewind(k.plan(k.lasts[1]), &toolbox.RewindOptions{As: "first"})
	k.same("after turn 1", k.states[1])
}

// The plan shows what would change, and changes nothing.
func TestPlanShowsTheChanges(t *testing.T) {
	t.Parallel()
	k := newRewindKit(t, nil, everyChange[0])
	k.putEverything()
	k.run(1)
	plan := k.plan(0)
	var got []string
	for _, f := range plan.Files {
		got = append(got, fmt.Sprintf("%s %s +%d -%d", f.Action, f.Name, f.Added, f.Removed))
	}
	if d := cmp.Diff([]string{"remove new/deep/a.txt +0 -1", "restore old.txt +1 -1"}, got); d != "" {
		t.Errorf("plan (-want +got):\n%s", d)
	}
	if want := "-changed\n+old\n"; !strings.Contains(plan.Files[1].Diff, want) {
		t.Errorf("diff = %s, want it to contain %q", plan.Files[1].Diff, want)
	}
	k.same("the files after planning", k.states[1])
}

// Somebody else's change is not overwritten, unless the caller says so.
func TestRewindLeavesChangesOfOthers(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*rewindKit){
		"after the last change": func(k *rewindKit) { k.put("old.txt", "mine\n") },
		"removed":               func(k *rewindKit) { _ = os.Remove(filepath.Join(k.dir, "old.txt")) },
		"replaced by a link": func(k *rewindKit) {
			_ = os.Remove(filepath.Join(k.dir, "old.txt"))
			_ = os.Symlink("gone.txt", filepath.Join(k.dir, "old.txt"))
		},
		"between two changes": func(k *rewindKit) { k.put("old.txt", "mine\n"); k.turn() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newRewindKit(t, nil, everyChange[0], everyChange[2][:2])
			k.putEverything()
			k.run(1)
			do(k)
			now := k.tree()["old.txt"]
			plan := k.plan(0)
			if c := plan.Conflicts(); len(c) != 1 || c[0].Name != "old.txt" || c[0].Conflict == "" {
				t.Fatalf("conflicts = %+v, want old.txt", c)
			}
			k.rewind(plan, &toolbox.RewindOptions{As: "again"})
			if got := k.tree()["old.txt"]; got != now {
				t.Errorf("old.txt = %s, want it as it was: %s", got, now)
			}
			if _, there := k.tree()["new"]; there {
				t.Error("the other files were not rewound")
			}
			k.rewind(k.plan(0), &toolbox.RewindOptions{As: "once more", Overwrite: true})
			k.same("after overwriting", k.states[0])
		})
	}
}

// A change between the plan and the rewind is noticed.
func TestRewindNoticesAChangeSinceThePlan(t *testing.T) {
	t.Parallel()
	k := newRewindKit(t, nil, everyChange[0])
	k.putEverything()
	k.run(1)
	plan := k.plan(0)
	k.put("old.txt", "just now\n")
	if _, err := k.snaps.Rewind(t.Context(), k.agent, plan, &toolbox.RewindOptions{As: "again", Overwrite: true}); err == nil || !strings.Contains(err.Error(), "old.txt") {
		t.Errorf("error = %v, want one that names old.txt", err)
	}
	if got := k.content("old.txt"); got != "just now\n" {
		t.Errorf("old.txt = %q, want the change of somebody else", got)
	}
}

// A rewind can keep the files or the messages.
func TestRewindOfOneHalf(t *testing.T) {
	t.Parallel()
	k := newRewindKit(t, nil, everyChange[0])
	k.putEverything()
	k.run(1)
	k.rewind(k.plan(1), &toolbox.RewindOptions{As: "talk", KeepFiles: true})
	k.same("with KeepFiles", k.states[1])
	if s := k.rewind(k.plan(1), &toolbox.RewindOptions{KeepMessages: true}); s.ID() != "s" {
		t.Errorf("session = %s, want the old one", s.ID())
	}
	k.same("with KeepMessages", k.states[0])
}

// What git ignores is neither kept nor removed, and a file that is too large is reported.
func TestRewindSaysWhatItCannotRestore(t *testing.T) {
	t.Parallel()
	k := newRewindKit(t, &toolbox.SnapshotOptions{File: 10}, []scripted.Call{shellCall("echo more >> big.txt; echo x >> build/out; echo > .gitignore; rm small.txt")})
	k.put("big.txt", strings.Repeat("x", 100))
	k.put("small.txt", "small")
	k.put("build/out", "out")
	k.put(".gitignore", "build")
	k.run(1)
	plan := k.plan(0)
	var lost []string
	for _, f := range plan.Conflicts() {
		lost = append(lost, f.Name+": "+f.Lost)
	}
	if d := cmp.Diff([]string{
		"big.txt: its content was not kept: it is larger than 10 bytes",
		"build/out: its content was not kept: the command also changed what git ignores, so the file may be older",
	}, lost); d != "" {
		t.Errorf("conflicts (-want +got):\n%s", d)
	}
	k.rewind(plan, &toolbox.RewindOptions{As: "again", Overwrite: true})
	tree := k.tree()
	want := maps.Clone(k.states[1])
	want["small.txt"], want[".gitignore"] = k.states[0]["small.txt"], k.states[0][".gitignore"]
	if d := cmp.Diff(want, tree); d != "" {
		t.Errorf("the files (-want +got):\n%s", d)
	}
}

// In a project over the limits, the files that a command names are covered.
func TestSnapshotsOfALargeProject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	snaps := toolbox.NewSnapshots(t.TempDir(), &toolbox.SnapshotOptions{Files: 5, Failed: func(err error) { t.Error(err) }})
	defer func() { _ = snaps.Close() }()
	for i := range 20 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d", i)), []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tools := toolbox.New(openRoot(t, dir), &toolbox.Options{Snapshots: snaps, Shell: &toolbox.ShellOptions{
		Confine: func(_ context.Context, _ *belay.Invocation, run *toolbox.ShellRun) error {
			run.Changes = []string{"f1", "f2", filepath.Join(dir, "f3"), "../outside"}
			return nil
		},
	}})
	store := memstore.New(nil)
	agent, err := belay.New(scripted.New([]scripted.Step{{Calls: []scripted.Call{shellCall("echo new | tee f1 f3; rm f2; echo new > f4")}}, {Text: "done"}}, nil),
		&belay.Options{Store: store, Authorizer: permit.Off(), Extensions: []belay.Extension{tools}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Session("s").Turn(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	plan, err := snaps.Plan(t.Context(), store, "s", 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range plan.Files {
		names = append(names, f.Name)
	}
	if !slices.Equal(names, []string{"f1", "f2", "f3"}) {
		t.Errorf("plan has %q, want the named files", names)
	}
}

// A command that changes nothing in the project is not looked at.
func TestSnapshotsLeaveOutReadOnlyCommands(t *testing.T) {
	t.Parallel()
	kept := filepath.Join(t.TempDir(), "kept")
	snaps := toolbox.NewSnapshots(kept, nil)
	tools := toolbox.New(openRoot(t, t.TempDir()), &toolbox.Options{Snapshots: snaps, Shell: &toolbox.ShellOptions{
		Confine: func(_ context.Context, _ *belay.Invocation, run *toolbox.ShellRun) error {
			run.ReadOnly = true
			return nil
		},
	}})
	for _, tool := range tools.Tools() {
		if tool.Declaration().Name == "shell" {
			if _, err := tool.Call(t.Context(), &belay.Invocation{ID: "call", Session: "s", Input: []byte(`{"command": "true"}`)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := os.Stat(kept); !os.IsNotExist(err) {
		t.Errorf("the directory of the snapshots: %v, want none", err)
	}
}

// Snapshots are bounded: old changes of a session are forgotten, and the plan says so.
func TestSnapshotsAreBounded(t *testing.T) {
	t.Parallel()
	var calls []scripted.Call
	for i := range 30 {
		calls = append(calls, call("write", fmt.Sprintf(`{"path": "a.txt", "content": "%d%s"}`, i, strings.Repeat("x", 1000))))
	}
	k := newRewindKit(t, &toolbox.SnapshotOptions{Session: 10_000}, calls)
	k.run(1)
	if plan := k.plan(0); !strings.Contains(plan.Incomplete, "cannot be undone") {
		t.Errorf("incomplete = %q, want a sentence", plan.Incomplete)
	}
	var bytes int64
	_ = filepath.WalkDir(k.kept, func(_ string, e fs.DirEntry, err error) error {
		if info, infoErr := e.Info(); err == nil && infoErr == nil && info.Mode().IsRegular() && e.Name() != "log" {
			bytes += info.Size()
		}
		return nil
	})
	if bytes == 0 || bytes > 10_000 {
		t.Errorf("%d bytes are kept, want some, and at most 10000", bytes)
	}
}

// The snapshots of old sessions are forgotten, and those of a deleted session are removed.
//
// SPEC L-13
func TestSnapshotsEndWithTheirSession(t *testing.T) {
	t.Parallel()
	k := newRewindKit(t, nil, everyChange[0])
	k.putEverything()
	k.run(1)
	if len(k.plan(0).Files) == 0 {
		t.Fatal("nothing was kept")
	}
	if err := k.agent.DeleteSession(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(k.kept, "*", "*")); len(left) > 0 {
		t.Errorf("left after the session was deleted: %q", left)
	}
	if _, err := k.snaps.Plan(t.Context(), k.store, "s", 0); err == nil {
		t.Error("a plan for a deleted session: want an error")
	}
}

// A process with new limits forgets the sessions that were not used for the longest time.
func TestSnapshotsForgetOldSessions(t *testing.T) {
	t.Parallel()
	kept := t.TempDir()
	for i := range 6 {
		snaps := toolbox.NewSnapshots(kept, &toolbox.SnapshotOptions{Sessions: 3})
		tools := toolbox.New(openRoot(t, t.TempDir()), &toolbox.Options{Snapshots: snaps})
		for _, tool := range tools.Tools() {
			if tool.Declaration().Name == "write" {
				if _, err := tool.Call(t.Context(), &belay.Invocation{ID: "call", Session: fmt.Sprint(i), Input: []byte(`{"path": "a", "content": "b"}`)}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	entries, err := os.ReadDir(kept)
	if err != nil || len(entries) != 3 {
		t.Errorf("%d sessions are kept, %v, want 3", len(entries), err)
	}
}
