package mcptool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/provider/scripted"
)

// chatter is a server that prints a lot to standard error, including a secret, and then
// ends.
func chatter() int {
	secret := os.Getenv("SECRET")
	line, _, _ := strings.Cut(secret, "\n")
	fmt.Fprintln(os.Stderr, secret)
	fmt.Fprintln(os.Stderr, strings.Repeat("x", 4<<10-5)+line+strings.Repeat("y", 1<<20)) // the secret is where Belay cuts a long line
	for i := range 2000 {
		fmt.Fprintf(os.Stderr, "%04d %s\n", i, strings.Repeat("z", 1000))
	}
	fmt.Fprintln(os.Stderr, "the last word")
	return 3
}

// Belay logs the standard error of a server up to a limit, counted from each start. The
// log contains no part of a secret. The status has the last line, even if it is beyond
// the limit.
//
// SPEC E-09, C-11
func TestWhatAServerPrintsIsBounded(t *testing.T) {
	t.Parallel()
	const lives, most, longest = 2, 256 << 10, 4 << 10
	server := child(t, "s", "chatters", map[string]string{"SECRET": "${KEY}"})
	begun, enough := 0, make(chan struct{})
	server.Prepare = func(ctx context.Context, argv []string) ([]string, error) {
		if begun++; begun > lives {
			close(enough)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return argv, nil
	}
	log := new(records)
	opts := quick(mcptool.Options{Wait: -1, Logger: slog.New(slog.NewJSONHandler(log, nil)), Environ: append(os.Environ(), "KEY=hunter-2-hunter\nhunter-3-hunter")})
	e := open(t, opts, server)
	select {
	case <-enough: // the log of both lives is complete
	case <-time.After(4 * patience): // the race detector slows the search for secrets down
		t.Fatal("it was not started again")
	}
	if s := e.Servers()[0]; s.Err == nil || s.Err.Error() != "it ended with exit code 3: the last word" {
		t.Errorf("it is down because of %.200v", s.Err)
	}
	said, cut := 0, 0
	for text := range strings.Lines(log.String()) {
		var r struct {
			Msg  string `json:"msg"`
			Line string `json:"line"`
		}
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		switch r.Msg {
		case "mcp server stderr":
			if said += len(r.Line); len(r.Line) > longest {
				t.Errorf("a line of %d bytes is logged, want %d at most", len(r.Line), longest)
			}
		case "mcp server logs too much: the rest is not logged":
			cut++
		}
	}
	if said < lives*most || said > lives*(most+longest) || cut != lives {
		t.Errorf("%d bytes of %d lives are logged, want %d of each; %d times it is told that it is too much", said, lives, most, cut)
	}
	if at := strings.Index(log.String(), "hunt"); at >= 0 {
		t.Errorf("a part of the secret is logged: %q", log.String()[max(at-20, 0):at+20])
	}
}

// Long progress messages are cut. If several messages wait, only the last is reported.
// Progress messages do not delay other calls.
//
// SPEC E-09
func TestProgressIsBounded(t *testing.T) {
	t.Parallel()
	const all, most = 5000, 1000
	e, err := mcptool.New(t.Context(), []mcptool.Server{child(t, "test", "full", nil)}, quick(mcptool.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	desk := newDesk(t)
	model := scripted.New([]scripted.Step{{Calls: []scripted.Call{{Tool: "test__run", Input: fmt.Sprintf(`{"text":%q,"n":%d}`, desk.addr, all)}}}, {Text: "arrived"}}, nil)
	agent, err := belay.New(model, &belay.Options{Extensions: []belay.Extension{e}})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for event, err := range agent.Session("run").Run(t.Context(), "run") {
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind != belay.EventToolProgress {
			continue
		}
		if told = append(told, event.Text); len(told) == 1 { // the first report blocks until all other messages have arrived
			desk.next()
			if r := call(t, e, "test__echo", `{"text":"meanwhile"}`); r.Text != "meanwhile" {
				t.Errorf("another call: result = %+v", r)
			}
		}
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if len(told) < 2 || len(told) > 10 {
		t.Fatalf("%d of %d news were told to one who listened to one of them", len(told), all)
	}
	last, begins := told[len(told)-1], fmt.Sprintf("%d of %d: é", all, all)
	if !strings.HasPrefix(last, begins) || !strings.HasSuffix(last, "é…") || utf8.RuneCountInString(last) != most+1 {
		t.Errorf("the last of %d characters is told with %d: %.40q", 1<<20, utf8.RuneCountInString(last), last)
	}
}
