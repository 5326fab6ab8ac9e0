package whole_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/belay-run/belay/internal/demo"
	"github.com/belay-run/belay/internal/demo/whole"
	"github.com/belay-run/belay/sandbox"
)

// story is the expected output. It is the same in each run, because the model is scripted,
// and hooks and tools run in a fixed order.
const story = `== A turn, as it happens
  user      Tidy the changelog for release 1.2.
  told      house-rules: Change at most 3 files. (two hooks set the policy, to 20 and 3: the smaller value wins)
  told      git-status: branch main, 2 files changed
  told      open-issues: issue 7: the changelog is untidy
  model     Let me look around.
  call      read {"path": "docs/../CHANGELOG.md"}
  rewritten by clean-paths: {"path":"CHANGELOG.md"}
  call      search {"text": "release"}
  result    read: # 1.2
            - fixd the login
  result    search: config.env: release_token = [REDACTED]
  model     I put the tidy version where it is served.
  call      write {"path":"/srv/www/CHANGELOG.md","text":"# 1.2\n\n- Fixed the login.\n"}
  denied    write: Denied by "stay-inside": /srv/www/CHANGELOG.md is outside the project
            Do not repeat this call. Reach the goal in another way, or tell the user what you need.
  model     Not there, then. I write it in the project.
  call      write {"path":"CHANGELOG.md","text":"# 1.2\n\n- Fixed the login.\n"}
  asked     may write run? the scanner did not answer in time (says virus-scan)
  decided   yes, by the demo's person: it is only the changelog
  result    write: 26 bytes written
  told      House style wants a date behind each version.
  model     The date is missing. I add it.
  call      write {"path":"CHANGELOG.md","text":"# 1.2 (2026-03-02)\n\n- Fixed the login.\n"}
  result    write: 39 bytes written
  model     The changelog is tidy.
  full      the context nears the window of 8000 tokens and is summarized
  summary   CHANGELOG.md is tidy, with a date. /srv/www is off limits.
  told      Blocked by hook "definition-of-done": the turn does not end yet: NEWS.md does not tell of release 1.2
  model     Right, the news.
  call      write {"path":"NEWS.md","text":"1.2 is out.\n"}

== The process is killed: NEWS.md is written, but the result is not stored
  killed    process `

// resumed is the expected output of the second process.
const resumed = `
== Another process opens the same file and continues the turn
  recovered the session of the killed process is free again; its turn is still open
  aborted   write: The process ended during this call, so its result is lost. The call may have run completely, partly or not at all. Find out before you repeat it.
  model     I was interrupted. Let me see how far that came.
  call      read {"path":"NEWS.md"}
  result    read: 1.2 is out.
  model     It was written. CHANGELOG.md and NEWS.md are ready for release 1.2.
  end       end_turn after 8 steps
`

// The tour prints the expected output. Durations are not compared, because they differ from
// run to run.
func TestTour(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := demo.Run(t.Context(), &out, whole.Options()); err != nil {
		t.Fatal(err)
	}
	rest := out.String()
	for _, want := range []string{ // in this order
		"14 hooks on 8 of the 23 phases",
		"== Mistakes in hooks are found when they are installed, never during a turn",
		`"slow" on tool.pre: timeout: deadline execution needs a timeout`,
		`no subscription "stay-insid" (did you mean "stay-inside"?)`,
		story,
		"without any cleanup",
		resumed,
		"== Why was the write denied?",
		"tool.pre: stay-inside won",
		"2.  stay-inside    completed  deny  <- won",
		"4.  virus-scan     not asked", "(hook.skipped)",
		"== A hook hung.",
		"virus-scan at tool.pre: hook.timeout: no answer within 100ms",
		"== After the hooks, every call must pass the floor",
		"go test ./...",
		"X=rm; $X -rf docs", "ask   protection destructive.files",
		"git push origin main", "ask   zone 4",
		"belay approvals approve ap-1'", "deny  protection self.command",
		"rm -rf /", "zone 6 never      deny  zone 6",
		contained(t),
		"== Hooks without Go:",
		"closed    house/as-command: its files are not trusted yet",
		"before anybody trusts it, the call is denied by house/",
		"after a person trusts it, the call is denied by house/drafts-only",
		`after a person also grants rewrite_input, the call runs with {"path":"drafts/NEWS.md"`,
		"shadow    house/strict would have answered",
		"as a command and",
		"== What users type:",
		"skill     concise, by the user",
		"subagent  reviewer begins: Review CHANGELOG.md.",
		`denied    reviewer: write: Denied by "stay-inside": /srv/www/REVIEW.md is outside the project`,
		"subagent  reviewer ends: success",
		"model     Release 1.2 is reviewed.",
		`"[invoked_extension__skill_concise]" in its place, and the section "Releases of project are reviewed first."`,
		"== Background: work is queued with its record, and a worker takes it",
		"attempt 1 of learn: completed",
		"== Transcript: what was said, by whom, and what the model saw of it",
		" 1  user        Tidy the changelog",
		" 2  context     git-status",
		" 3  assistant   Let me look around. [calls read, rewritten by clean-paths] [calls search]",
		" 4  results     [read] [search]",
		" 6  results     [write: denied]",
		" 9  reminder    House style",
		"13  compaction  CHANGELOG.md is tidy",
		"16  results     [write: aborted]",
		"19  assistant   It was written.",
		"8 steps: 7720 tokens in, 14180 from the cache, 435 out: $0.0339",
		"== Timeline: every hook left a record",
		"turn.pre_policy", "friday-policy", "completed +policy",
		"clean-paths", "completed +input",
		"completed +result",
		"skipped (shadow)",
		"audit:demo.denied",
		"completed +deny (shadow)",
		"timed_out +ask hook.timeout",
		"completed +context",
		"completed +continue",
		"---- here the process was killed; another one continues ----",
		"backgrounded",
		"learn #1",
		"the scratch directory is gone",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Errorf("the tour does not show %q, or not in its place:\n%s", want, out.String())
			continue
		}
		rest = after
	}
	if strings.Contains(out.String(), "key-4f1a9c") {
		t.Error("the tour shows the key that was redacted")
	}
	_, records, _ := strings.Cut(out.String(), "== Timeline")
	for _, said := range []string{"CHANGELOG", "login", "outside the project", "/srv/www"} {
		if strings.Contains(records, said) {
			t.Errorf("the timeline quotes %q of what was said", said)
		}
	}
}

// contained returns the expected output of the sandbox part, or "" without a sandbox.
func contained(t *testing.T) string {
	t.Helper()
	if box := sandbox.Find(t.Context(), nil); box.Kind() != sandbox.None {
		return "== The floor only reads a command, the sandbox confines it: " + string(box.Kind()) +
			"\n  ran       sh tidy.sh: the command itself does not show what the script does\n  inside    version.txt: written\n  outside   outside.txt: not written\n"
	}
	return "This machine has none, so commands are one zone higher\n"
}

// The tour leaves no files behind, even if it is cancelled.
func TestTourLeavesNothingBehind(t *testing.T) {
	for _, test := range []struct {
		rule string
		at   string // the output at which the test cancels the tour
		want error
	}{
		{"a whole tour", "nowhere", nil},
		{"a tour that is called off", "call      search", context.Canceled},
	} {
		t.Run(test.rule, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			t.Setenv("TMP", temp) // the variable on Windows
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := cancelling{at: test.at, cancel: cancel}
			if err := demo.Run(ctx, &out, whole.Options()); !errors.Is(err, test.want) {
				t.Errorf("the tour ends with %v, want %v", err, test.want)
			}
			left, err := os.ReadDir(temp)
			if err != nil || len(left) > 0 {
				t.Errorf("there is %v left, error %v", left, err)
			}
		})
	}
}

// A cancelled tour returns the cause and leaves no files behind.
func TestTourHeedsItsContext(t *testing.T) {
	t.Parallel()
	calledOff := errors.New("called off")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(calledOff)
	var out bytes.Buffer
	if err := demo.Run(ctx, &out, whole.Options()); !errors.Is(err, calledOff) {
		t.Errorf("the tour ends with %v, want the cause", err)
	}
	if strings.Contains(out.String(), "==") {
		t.Errorf("the tour went on:\n%s", out.String())
	}
}

// The tour can be cancelled while it waits for something slow.
func TestTourCanBeCalledOff(t *testing.T) {
	t.Parallel()
	calledOff := errors.New("called off")
	ctx, cancel := context.WithCancelCause(t.Context())
	var out cancelling
	out.at, out.cancel = "call      search", func() { cancel(calledOff) } // this call takes a while
	if err := demo.Run(ctx, &out, whole.Options()); !errors.Is(err, calledOff) {
		t.Errorf("the tour ends with %v, want the cause", err)
	}
	if strings.Contains(out.String(), "I put the tidy version") || strings.Contains(out.String(), "== Why") {
		t.Errorf("the tour went on:\n%s", out.String())
	}
}

// cancelling is a writer that calls cancel when a text is written.
type cancelling struct {
	bytes.Buffer
	at     string
	cancel func()
}

func (c *cancelling) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(c.at)) {
		c.cancel()
	}
	return c.Buffer.Write(p)
}

func TestTourTellsThatItCannotWrite(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken on purpose")
	if err := demo.Run(t.Context(), writerFunc(func([]byte) (int, error) { return 0, broken }), whole.Options()); !errors.Is(err, broken) {
		t.Errorf("the tour ends with %v, want the writer's error", err)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestMain(m *testing.M) {
	sandbox.Main()                         // the tour runs a program in the sandbox
	if os.Getenv("BELAY_DEMO_DIR") != "" { // this process is the one that the tour kills
		if err := demo.Run(context.Background(), os.Stdout, whole.Options()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
