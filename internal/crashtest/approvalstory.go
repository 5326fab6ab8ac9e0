package crashtest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// RunApprovals kills a process while it waits for a person's answer. Then other processes
// decide, and others resume the turn. Each approved call must run once, and no other call
// may run.
func RunApprovals(t *testing.T, open Open) {
	t.Helper()
	for _, test := range approvalTests {
		for _, mode := range test.modes {
			t.Run(fmt.Sprintf("%s, on_ask %s", test.rule, mode), func(t *testing.T) {
				t.Parallel()
				test.tell(t, &plot{open: open, dir: t.TempDir(), mode: mode})
			})
		}
	}
}

// plot is a story about approvals: one store and several processes.
type plot struct {
	open   Open
	dir    string
	mode   belay.AskMode // for the process that asks; processes that resume use AskPark
	expiry time.Duration
	calls  []int
}

// The modes of the process that asks: it parks the turn, or it waits for an approver.
var (
	parked = []belay.AskMode{belay.AskPark}
	anyhow = []belay.AskMode{belay.AskPark, belay.AskWait}
)

// approvalTests are the stories.
var approvalTests = []struct {
	rule  string
	modes []belay.AskMode
	tell  func(t *testing.T, p *plot)
}{
	{"a yes from another process runs the call once", anyhow, func(t *testing.T, p *plot) {
		t.Helper()
		asked := p.ask(t, 1)
		p.rule(t, ruling{By: "ann"}, yes(asked[0], "ann"))
		p.resume(t, "", belay.EndTurn)
		p.want(t, "0-0 ran")
	}},
	{"a no from another process keeps the call from running", anyhow, func(t *testing.T, p *plot) {
		t.Helper()
		asked := p.ask(t, 1)
		p.rule(t, ruling{By: "ann"}, no(asked[0], "ann"))
		p.resume(t, "", belay.EndTurn)
		p.want(t, "0-0 denied by ann")
	}},
	{"what nobody decides stays pending however often it is resumed", anyhow, func(t *testing.T, p *plot) {
		t.Helper()
		asked := p.ask(t, 1)
		for range 2 {
			if waits := p.resume(t, "", belay.EndParked); len(waits) != 1 || waits[0].ID != asked[0].ID {
				t.Errorf("the turn waits for %+v, want %s", waits, asked[0].ID)
			}
		}
		p.rule(t, ruling{By: "ann"}, yes(asked[0], "ann"))
		p.resume(t, "", belay.EndTurn)
		p.want(t, "0-0 ran")
	}},
	{"what expires while nobody lives is denied", parked, func(t *testing.T, p *plot) {
		t.Helper()
		p.expiry = 50 * time.Millisecond
		asked := p.ask(t, 1)
		<-time.After(time.Until(asked[0].Expires))
		p.rule(t, ruling{Error: "expired"}, yes(asked[0], "ann"))
		p.resume(t, "", belay.EndTurn)
		p.want(t, "0-0 denied by expiry")
	}},
	{"a decision about another input is refused, and the right one counts", anyhow, func(t *testing.T, p *plot) {
		t.Helper()
		asked := p.ask(t, 1, 1)
		wrong, unknown := yes(asked[0], "bob"), yes(asked[0], "bob")
		wrong.Hash, unknown.Approval = "sha256:other", "ap-other"
		p.rule(t, ruling{Error: "wrong hash"}, wrong)
		p.rule(t, ruling{Error: "not found"}, unknown)
		p.resume(t, "", belay.EndParked)
		p.rule(t, ruling{By: "ann"}, yes(asked[0], "ann"))
		next := p.resume(t, "", belay.EndParked)
		p.rule(t, ruling{Error: "decided", By: "ann"}, no(asked[0], "bob"))
		p.rule(t, ruling{By: "ann"}, no(next[0], "ann"))
		p.resume(t, "", belay.EndTurn)
		p.want(t, "0-0 ran", "1-0 denied by ann")
	}},
	{"a yes for the session holds after the next kill", anyhow, func(t *testing.T, p *plot) {
		t.Helper()
		asked := p.ask(t, 1, 1, 2)
		wide := yes(asked[0], "ann")
		wide.Scope.Kind = belay.ScopeSession
		p.rule(t, ruling{By: "ann"}, wide)
		p.resume(t, "before act #1", "") // killed before the first call; the grant is stored
		p.resume(t, "after act #1", "")  // killed after the call of the second step, which needs no new approval
		p.resume(t, "", belay.EndTurn)   // runs the calls of the third step
		p.want(t, "0-0 interrupted", "1-0 interrupted, but ran", "2-0 ran", "2-1 ran")
		for _, a := range look(t, p.open, p.dir).approvals[1:] {
			if a.Decided == nil || a.Decided.By != "ann" || !strings.HasSuffix(a.Decided.Reason, asked[0].ID) {
				t.Errorf("what the yes for the session answered is on record as %+v, %+v", a, a.Decided)
			}
		}
	}},
	{"if two people decide at once, one wins and the other gets an error", anyhow, func(t *testing.T, p *plot) {
		t.Helper()
		asked := p.ask(t, 8)
		var all, none []belay.Decision
		for i := range asked {
			all, none = append(all, yes(asked[i], "ann")), append(none, no(asked[i], "bob"))
		}
		slices.Reverse(none) // the two processes decide in opposite order, so that both decide some calls first
		told := p.decide(t, all, none)
		p.resume(t, "", belay.EndTurn)
		var want []string
		for i, a := range asked {
			ann, bob := told[0][i], told[1][len(asked)-1-i]
			switch {
			case ann == (ruling{a.ID, "", "ann"}) && bob == (ruling{a.ID, "decided", "ann"}):
				want = append(want, "0-"+fmt.Sprint(i)+" ran")
			case bob == (ruling{a.ID, "", "bob"}) && ann == (ruling{a.ID, "decided", "bob"}):
				want = append(want, "0-"+fmt.Sprint(i)+" denied by bob")
			default:
				t.Fatalf("ann got %+v, and bob %+v", ann, bob)
			}
		}
		p.want(t, want...)
	}},
	{"ten calls of a message are decided in any order", anyhow, func(t *testing.T, p *plot) {
		t.Helper()
		for seed := range uint64(3) {
			(&plot{open: p.open, dir: t.TempDir(), mode: p.mode}).tellTen(t, rand.New(rand.NewPCG(seed, 0)))
		}
	}},
}

// tellTen decides about ten calls in random order, several calls at a time, and resumes
// the turn after each group of decisions.
func (p *plot) tellTen(t testing.TB, random *rand.Rand) {
	t.Helper()
	asked := p.ask(t, 10)
	want, order := make([]string, len(asked)), random.Perm(len(asked))
	for len(order) > 0 {
		n := 1 + random.IntN(len(order))
		var decisions []belay.Decision
		for _, i := range order[:n] {
			if random.IntN(2) == 0 {
				want[i] = fmt.Sprintf("0-%d ran", i)
				decisions = append(decisions, yes(asked[i], "ann"))
			} else {
				want[i] = fmt.Sprintf("0-%d denied by bob", i)
				decisions = append(decisions, no(asked[i], "bob"))
			}
		}
		for i, got := range p.decide(t, decisions)[0] {
			if got != (ruling{Approval: decisions[i].Approval, By: decisions[i].By}) {
				t.Errorf("%s got %+v", decisions[i].By, got)
			}
		}
		order = order[n:]
		end := belay.EndParked
		if len(order) == 0 {
			end = belay.EndTurn
		}
		if waits := p.resume(t, "", end); len(waits) != len(order) {
			t.Errorf("the turn waits for %d, want %d", len(waits), len(order))
		}
	}
	p.want(t, want...)
}

func yes(a belay.Approval, by string) belay.Decision {
	return belay.Decision{Approval: a.ID, Hash: a.Hash, Allow: true, By: by, Time: time.Now()}
}

func no(a belay.Approval, by string) belay.Decision {
	return belay.Decision{Approval: a.ID, Hash: a.Hash, By: by, Reason: "no", Time: time.Now()}
}

// ask starts a process that runs a turn. calls is the number of calls in each step. ask
// kills the process after it has asked about the calls of the first step, and returns the
// questions in call order.
func (p *plot) ask(t testing.TB, calls ...int) []belay.Approval {
	t.Helper()
	p.calls = calls
	c := p.start(t, part{Role: "ask", OnAsk: p.mode})
	asked := make([]belay.Approval, calls[0])
	for range asked {
		a := c.next(t, func(l line) bool { return l.Asked != nil }).Asked
		var i int
		if _, err := fmt.Sscanf(a.Call, "0-%d", &i); err != nil {
			t.Fatalf("the question is about call %q: %v", a.Call, err)
		}
		asked[i] = *a
	}
	if p.mode == belay.AskPark {
		c.next(t, func(l line) bool { return l.End == belay.EndParked })
	}
	c.kill(t)
	if found := look(t, p.open, p.dir); len(found.approvals) != calls[0] || len(found.effects) != 0 {
		t.Fatalf("after the kill %d approvals are on record, and these calls have run: %v", len(found.approvals), found.effects)
	}
	return asked
}

// decide starts one process for each list of decisions, all at once, and returns the
// rulings of each process.
func (p *plot) decide(t testing.TB, lists ...[]belay.Decision) [][]ruling {
	t.Helper()
	var deciders []*process
	for _, decisions := range lists {
		c := p.start(t, part{Role: "decide", Decisions: decisions})
		c.next(t, func(l line) bool { return l.Ready })
		deciders = append(deciders, c)
	}
	for _, c := range deciders {
		if _, err := io.WriteString(c.in, "now\n"); err != nil {
			t.Fatal(err)
		}
	}
	var told [][]ruling
	for i, decisions := range lists {
		var one []ruling
		for range decisions {
			one = append(one, *deciders[i].next(t, func(l line) bool { return l.Decided != nil }).Decided)
		}
		told = append(told, one)
		deciders[i].end(t)
	}
	return told
}

// rule starts a process that makes one decision, and asserts its ruling.
func (p *plot) rule(t testing.TB, want ruling, d belay.Decision) {
	t.Helper()
	want.Approval = d.Approval
	if got := p.decide(t, []belay.Decision{d})[0][0]; got != want {
		t.Errorf("%s got %+v, want %+v", d.By, got, want)
	}
}

// resume starts a process that resumes the turn. If kill is set, the process must kill
// itself at that point. Otherwise the turn must end with the given reason. resume returns
// the approvals that the turn waits for.
func (p *plot) resume(t testing.TB, kill string, end belay.EndReason) []belay.Approval {
	t.Helper()
	c := p.start(t, part{Role: "resume", OnAsk: belay.AskPark, Kill: kill})
	if kill != "" {
		c.next(t, func(l line) bool { return l.Point == kill })
		c.gone(t)
		return nil
	}
	var waits []belay.Approval
	got := c.next(t, func(l line) bool {
		if l.Asked != nil {
			waits = append(waits, *l.Asked)
		}
		return l.End != ""
	}).End
	if got != end {
		t.Errorf("the turn ended %s, want %s", got, end)
	}
	c.end(t)
	return waits
}

// want asserts the outcome of the calls, in call order: the results for the model, and the
// effects.
func (p *plot) want(t testing.TB, want ...string) {
	t.Helper()
	f := look(t, p.open, p.dir)
	var got []string
	for _, m := range f.messages {
		for _, part := range m.Parts {
			if part.Result == nil {
				continue
			}
			r, n := part.Result, f.effects[part.Result.Call]
			what := fmt.Sprintf("%s %s: %s", r.Call, r.Class, r.Text)
			denied, by, _ := strings.Cut(r.Text, `"`)
			by, _, _ = strings.Cut(by, `"`)
			switch {
			case !r.IsError && n == 1:
				what = r.Call + " ran"
			case r.Class == belay.ClassDenied && n == 0 && denied == "Denied by ":
				what = r.Call + " denied by " + by
			case r.Class == belay.ClassAborted && strings.HasPrefix(r.Text, interruption):
				what = r.Call + " interrupted" + map[int]string{0: "", 1: ", but ran"}[n]
			}
			got = append(got, what)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the calls: %q, want %q", got, want)
	}
	for call, n := range f.effects {
		if n > 1 {
			t.Errorf("call %s ran %d times", call, n)
		}
	}
	if f.info.Held || f.info.State.Turn != nil {
		t.Errorf("the session is not at rest: %+v", f.info)
	}
}

// process is a child that plays a part.
type process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	errs *strings.Builder
	over bool
}

// start starts a process. The process is killed when the test ends, if it still runs.
func (p *plot) start(t testing.TB, role part) *process {
	t.Helper()
	role.Calls, role.Expiry = p.calls, p.expiry
	text, err := json.Marshal(role)
	if err != nil {
		t.Fatal(err)
	}
	c := &process{cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$"), errs: new(strings.Builder)} //nolint:gosec // the test binary itself
	c.cmd.Env = append(os.Environ(), childDir+"="+p.dir, childPart+"="+string(text))
	c.cmd.Stderr = c.errs
	in, errIn := c.cmd.StdinPipe()
	out, errOut := c.cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut); err != nil {
		t.Fatal(err)
	}
	c.in, c.out = in, bufio.NewScanner(out)
	c.out.Buffer(nil, 1<<20)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.kill(t) })
	return c
}

// next reads lines of the process until a line matches is, and returns that line.
func (c *process) next(t testing.TB, is func(line) bool) line {
	t.Helper()
	for c.out.Scan() {
		var l line
		if err := json.Unmarshal(c.out.Bytes(), &l); err != nil {
			t.Fatalf("the child said %q: %v", c.out.Text(), err)
		}
		if is(l) {
			return l
		}
	}
	_ = c.cmd.Wait() // after Wait, c.errs has the whole error output
	c.over = true
	t.Fatalf("the child ended too soon: %v\n%s", c.out.Err(), c.errs)
	return line{}
}

// kill kills the process, with SIGKILL on systems that have signals.
func (c *process) kill(t testing.TB) {
	t.Helper()
	if c.over {
		return
	}
	c.over = true
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("kill: %v", err)
	}
	_ = c.cmd.Wait() // the error only says that the process was killed
}

// end waits for a process that ends normally.
func (c *process) end(t testing.TB) {
	t.Helper()
	c.over = true
	for c.out.Scan() {
	}
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("the child failed: %v\n%s", err, c.errs)
	}
}

// gone waits for a process that kills itself.
func (c *process) gone(t testing.TB) {
	t.Helper()
	c.over = true
	for c.out.Scan() {
	}
	err := c.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Exited() {
		t.Errorf("the child was not killed at that point: %v\n%s", err, c.errs)
	}
}
