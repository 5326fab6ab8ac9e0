package channel_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/channel"
	"github.com/belay-run/belay/channel/internal/channeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// chat is a channel in memory.
type chat struct {
	mu       sync.Mutex
	sent     []*channel.Request
	outcomes map[string]string // by place
	fails    int               // how many calls fail
	failure  error
	panics   bool
	answers  chan *channel.Answer
	opened   chan struct{} // gets a value for each connection, unless it is nil
	breaks   chan error    // ends the connection
	replies  chan channel.Reply
}

func newChat() *chat {
	return &chat{outcomes: make(map[string]string), answers: make(chan *channel.Answer), breaks: make(chan error), replies: make(chan channel.Reply)}
}

func (*chat) Kind() string { return "chat" }

func (c *chat) Send(_ context.Context, r *channel.Request) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.panics {
		panic("in Send")
	}
	if c.fails > 0 {
		c.fails--
		return "", c.failure
	}
	c.sent = append(c.sent, r)
	return fmt.Sprintf("place %d", len(c.sent)), nil
}

func (c *chat) Update(_ context.Context, place string, r *channel.Request, outcome string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fails > 0 {
		c.fails--
		return c.failure
	}
	if r.Title == "" {
		return errors.New("an update has no title")
	}
	c.outcomes[place] = outcome
	return nil
}

func (*chat) Test(context.Context, string) error { return nil }

func (c *chat) Receive(ctx context.Context, in *channel.Inbox) error {
	in.Connected()
	if c.opened != nil {
		c.opened <- struct{}{}
	}
	for {
		select {
		case a := <-c.answers:
			c.replies <- in.Answer(ctx, a)
		case err := <-c.breaks:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// requests returns what was sent.
func (c *chat) requests() []*channel.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sent)
}

// outcome returns what a message shows.
func (c *chat) outcome(place string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outcomes[place]
}

// press answers as a person, and returns the reply.
func (c *chat) press(a *channel.Answer) channel.Reply {
	c.answers <- a
	return <-c.replies
}

// awaitSent waits until a number of requests was sent.
func awaitSent(t *testing.T, c *chat, n int) []*channel.Request {
	t.Helper()
	channeltest.Eventually(t, fmt.Sprintf("%d requests are sent", n), func() bool { return len(c.requests()) >= n })
	return c.requests()
}

// A request shows in short what will run, without secrets and without control characters, and
// with a link.
//
// SPEC N-01, N-02
func TestRequestsAreShortAndSafe(t *testing.T) {
	t.Parallel()
	secret := "ghp_" + strings.Repeat("a1B2", 9) // the form of a token, and none
	for _, test := range []struct {
		rule, tool, input string
		want              channel.Request
	}{
		{"a command is shown", "shell", `{"command": "git push"}`, channel.Request{Title: "shell needs approval", Detail: "$ git push", Reason: "it changes things"}},
		{"a change is a diff", "edit", `{"path": "a.go", "old_string": "x\ny", "new_string": "z"}`, channel.Request{Title: "edit needs approval", Detail: "a.go\n- x\n- y\n+ z", Reason: "it changes things"}},
		{"a new file is a diff", "edit", `{"path": "a.go", "content": "x\n"}`, channel.Request{Title: "edit needs approval", Detail: "a.go\n+ x", Reason: "it changes things"}},
		{"other inputs are JSON", "shell", `{"n": 1}`, channel.Request{Title: "shell needs approval", Detail: `{"n":1}`, Reason: "it changes things"}},
		{"a question is shown", "ask_user", `{"question": "Which?", "options": ["a", "b"]}`, channel.Request{Title: "The agent asks a question", Detail: "Which?", Question: true, Options: []string{"a", "b"}}},
		{"secrets are removed", "shell", `{"command": "curl -H 'Authorization: Bearer ` + secret + `' x"}`, channel.Request{Title: "shell needs approval", Reason: "it changes things"}},
		{"secrets in lists are removed", "shell", `{"passwords": ["` + secret[5:] + `"], "n": 1}`, channel.Request{Title: "shell needs approval", Detail: `{"passwords":["[REDACTED]"],"n":1}`, Reason: "it changes things"}},
		{"control characters are removed", "shell", `{"command": "a\u001b[2Jb\u202ec"}`, channel.Request{Title: "shell needs approval", Detail: "$ a[2Jbc", Reason: "it changes things"}},
		{"a long command is cut", "shell", `{"command": "` + strings.Repeat("x", 5000) + `"}`, channel.Request{Title: "shell needs approval", Detail: "$ " + strings.Repeat("x", 1498) + "… (3502 more characters)", Reason: "it changes things"}},
		{"every field of a command is shown", "shell", `{"command": "ls", "host": "prod", "n": 3}`, channel.Request{Title: "shell needs approval", Detail: "$ ls\nhost: prod\nn: 3", Reason: "it changes things"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			p, c := channeltest.New(t), newChat()
			approval := p.Ask("s", test.tool, test.input)
			p.Run("team", c, "ann")
			got := awaitSent(t, c, 1)[0]
			if got.Approval != approval.ID || got.Session != "s" || got.Key == "" || len(got.Key) > 32 || got.Link != channeltest.Link(approval.ID) {
				t.Errorf("the request is %+v", got)
			}
			if strings.Contains(got.Detail, secret) || test.want.Detail == "" && !strings.HasPrefix(got.Detail, "$ curl -H 'Authorization: ") {
				t.Errorf("the request has a secret, or lacks the rest: %s", got.Detail)
			}
			if got.Title != test.want.Title || test.want.Detail != "" && got.Detail != test.want.Detail || got.Reason != test.want.Reason || got.Question != test.want.Question || !slices.Equal(got.Options, test.want.Options) {
				t.Errorf("the request is %+v, want %+v", got, test.want)
			}
		})
	}
}

// Only people on the list decide. The decision names them, and the message shows it. Others get a
// polite refusal, which is recorded. A second decision gets a reply that says who was faster.
//
// SPEC N-01, N-02
func TestDecisions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, tool, input string
		answer            channel.Answer
		before            func(*channeltest.Project, *belay.Approval)
		refused           bool
		reply, outcome    string
		allow             bool
		by, reason        string
	}{
		{"an approver approves", "shell", `{"command": "x"}`, channel.Answer{User: "ann", Allow: true}, nil, false, "Approved.", "Approved by chat:ann", true, "chat:ann", ""},
		{"an approver denies", "shell", `{"command": "x"}`, channel.Answer{User: "ann"}, nil, false, "Denied.", "Denied by chat:ann", false, "chat:ann", ""},
		{"a typed text denies a call, with a reason", "shell", `{"command": "x"}`, channel.Answer{User: "ann", Text: "not now", Typed: true, Allow: true}, nil, false, "Denied.", "Denied by chat:ann: not now", false, "chat:ann", "not now"},
		{"a typed text answers a question", "ask_user", `{"question": "Which?"}`, channel.Answer{User: "ann", Text: "this", Typed: true}, nil, false, "Answered.", "Answered by chat:ann: this", true, "chat:ann", "this"},
		{"an option has a number", "ask_user", `{"question": "Which?", "options": ["a", "b"]}`, channel.Answer{User: "ann", Option: 2, Allow: true}, nil, false, "Answered.", "Answered by chat:ann: b", true, "chat:ann", "b"},
		{"the number of an option is not its text", "ask_user", `{"question": "How many?", "options": ["2", "1"]}`, channel.Answer{User: "ann", Option: 1, Allow: true}, nil, false, "Answered.", "Answered by chat:ann: 2", true, "chat:ann", "2"},
		{"an option that does not exist is no answer", "ask_user", `{"question": "Which?", "options": ["a", "b"]}`, channel.Answer{User: "ann", Option: 3, Allow: true}, nil, true, "This is not a valid answer: ", "", false, "", ""},
		{"an answer must be valid", "ask_user", `{"question": "Which?", "options": ["a", "b"]}`, channel.Answer{User: "ann", Text: "c", Allow: true}, nil, true, "This is not a valid answer: ", "", false, "", ""},
		{"approving is no answer", "ask_user", `{"question": "Which?"}`, channel.Answer{User: "ann", Allow: true}, nil, true, "This is not a valid answer: ", "", false, "", ""},
		{"a question can be refused", "ask_user", `{"question": "Which?"}`, channel.Answer{User: "ann"}, nil, false, "Denied.", "Denied by chat:ann", false, "chat:ann", ""},
		{"a stranger is refused", "shell", `{"command": "x"}`, channel.Answer{User: "eve", Allow: true}, nil, true, "Sorry, you cannot decide this. Your id eve", "", false, "", ""},
		{"nobody in particular is refused", "shell", `{"command": "x"}`, channel.Answer{Allow: true}, nil, true, "Sorry, you cannot decide this.", "", false, "", ""},
		{"the first decision counts", "shell", `{"command": "x"}`, channel.Answer{User: "ann", Allow: true}, func(p *channeltest.Project, a *belay.Approval) { p.Decide(a, false, "bob") }, true, "Somebody was faster. Denied by bob", "Denied by bob", false, "bob", ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			p, c := channeltest.New(t), newChat()
			approval := p.Ask("s", test.tool, test.input)
			runner, _ := p.Run("team", c, "ann")
			test.answer.Key = awaitSent(t, c, 1)[0].Key
			if test.before != nil {
				test.before(p, &approval)
			}
			reply := c.press(&test.answer)
			if reply.Refused != test.refused || !strings.HasPrefix(reply.Text, test.reply) {
				t.Errorf("the reply is %+v, want %q", reply, test.reply)
			}
			decided := p.Decision(approval.ID)
			if test.by == "" {
				if decided != nil {
					t.Errorf("the decision is %+v, want none", decided)
				}
				if test.answer.User == "eve" {
					if refused := runner.Status().Refused; len(refused) != 1 || refused[0].User != "eve" || refused[0].Approval != approval.ID {
						t.Errorf("the refusals are %+v", refused)
					}
				}
				return
			}
			if decided == nil || decided.Allow != test.allow || decided.By != test.by || decided.Reason != test.reason || decided.Hash != approval.Hash {
				t.Errorf("the decision is %+v", decided)
			}
			channeltest.Eventually(t, "the message shows it", func() bool { return c.outcome("place 1") == test.outcome })
		})
	}
}

// A decision that is made elsewhere, and an abandoned turn, change the message.
//
// SPEC N-01
func TestDecidedElsewhere(t *testing.T) {
	t.Parallel()
	p, c := channeltest.New(t), newChat()
	first, _ := p.Ask("a", "shell", `{"command": "x"}`), p.Ask("b", "shell", `{"command": "y"}`)
	p.Run("team", c, "ann")
	place := make(map[string]string)
	for i, r := range awaitSent(t, c, 2) {
		place[r.Session] = fmt.Sprintf("place %d", i+1)
	}
	p.Decide(&first, true, "token ci")
	p.Abandon("b")
	channeltest.Eventually(t, "the messages show it", func() bool {
		return c.outcome(place["a"]) == "Approved by token ci" && c.outcome(place["b"]) == "Withdrawn: the turn has ended"
	})
}

// A restart asks nothing twice and loses nothing: neither what was asked while nobody listened,
// nor what was decided then, nor the buttons of old messages.
//
// SPEC N-01
func TestRestart(t *testing.T) {
	t.Parallel()
	p, c := channeltest.New(t), newChat()
	first := p.Ask("a", "shell", `{"command": "x"}`)
	second := p.Ask("b", "shell", `{"command": "y"}`)
	_, stop := p.Run("team", c, "ann")
	sent := awaitSent(t, c, 2)
	stop()
	third := p.Ask("c", "shell", `{"command": "z"}`)
	p.Decide(&first, true, "bob")
	_, stop = p.Run("team", c, "ann")
	sent = awaitSent(t, c, len(sent)+1)
	place := make(map[string]string)
	keys := make(map[string]string)
	for i, r := range sent {
		place[r.Session], keys[r.Session] = fmt.Sprintf("place %d", i+1), r.Key
	}
	channeltest.Eventually(t, "the decision is shown", func() bool { return c.outcome(place["a"]) == "Approved by bob" })
	if reply := c.press(&channel.Answer{Key: keys["b"], User: "ann", Allow: true}); reply.Refused {
		t.Errorf("an old button replies %+v", reply)
	}
	channeltest.Eventually(t, "the decision is shown", func() bool { return c.outcome(place["b"]) == "Approved by chat:ann" })
	stop()
	p.Run("team", c, "ann")
	if reply := c.press(&channel.Answer{Key: keys["c"], User: "ann"}); reply.Refused {
		t.Errorf("a button of the last run replies %+v", reply)
	}
	channeltest.Eventually(t, "the decision is shown", func() bool { return c.outcome(place["c"]) == "Denied by chat:ann" })
	if got := c.requests(); len(got) != 3 {
		t.Errorf("%d requests were sent, want 3", len(got))
	}
	for _, a := range []*belay.Approval{&first, &second, &third} {
		if p.Decision(a.ID) == nil {
			t.Errorf("approval %s is not decided", a.ID)
		}
	}
}

// A service that fails is tried again, with an end, and the state says why. A panic in the channel
// is such a failure. Nothing is decided.
//
// SPEC N-02
func TestFailures(t *testing.T) {
	t.Parallel()
	t.Run("it is tried again", func(t *testing.T) {
		t.Parallel()
		p, c := channeltest.New(t), newChat()
		c.fails, c.failure = 3, &channel.RetryError{After: time.Millisecond, Err: errors.New("busy")}
		approval := p.Ask("s", "shell", `{"command": "x"}`)
		p.Run("team", c, "ann")
		awaitSent(t, c, 1)
		c.mu.Lock()
		c.fails = 2
		c.mu.Unlock()
		p.Decide(&approval, true, "bob")
		channeltest.Eventually(t, "the message shows it", func() bool { return c.outcome("place 1") == "Approved by bob" })
	})
	t.Run("it is tried for as long as the channel runs", func(t *testing.T) {
		t.Parallel()
		p, c := channeltest.New(t), newChat()
		c.fails, c.failure = 1000, errors.New("no such chat")
		approval := p.Ask("s", "shell", `{"command": "x"}`)
		runner, _ := p.Run("team", c, "ann")
		channeltest.Eventually(t, "it has failed often", func() bool {
			all := runner.Status().Deliveries
			return len(all) == 1 && all[0].Attempts > 30 && all[0].Error == "no such chat"
		})
		if p.Decision(approval.ID) != nil {
			t.Error("a channel that is down has decided")
		}
		c.mu.Lock()
		c.fails = 0
		c.mu.Unlock()
		awaitSent(t, c, 1)
		channeltest.Eventually(t, "the failures are forgotten", func() bool { d := runner.Status().Deliveries[0]; return d.Attempts == 0 && d.Error == "" })
	})
	t.Run("a panic is a failure", func(t *testing.T) {
		t.Parallel()
		p, c := channeltest.New(t), newChat()
		c.panics = true
		p.Ask("s", "shell", `{"command": "x"}`)
		runner, _ := p.Run("team", c, "ann")
		channeltest.Eventually(t, "it is recorded", func() bool {
			all := runner.Status().Deliveries
			return len(all) == 1 && all[0].Error == "panic: in Send"
		})
	})
}

// One process at a time runs a channel. Another one waits, and takes over when the first one ends.
// It also waits until somebody has removed a damaged file.
//
// SPEC N-02
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	p, first, second, third := channeltest.New(t), newChat(), newChat(), newChat()
	p.Ask("a", "shell", `{"command": "x"}`)
	_, stop := p.Run("team", first, "ann")
	awaitSent(t, first, 1)
	_, stopSecond := p.Run("team", second, "ann")
	p.Ask("b", "shell", `{"command": "x"}`)
	awaitSent(t, first, 2)
	stop()
	p.Ask("c", "shell", `{"command": "x"}`)
	if got := awaitSent(t, second, 1); len(got) != 1 || got[0].Session != "c" {
		t.Errorf("the second process sent %+v, want what the first one has not sent", got)
	}
	stopSecond()
	file := filepath.Join(p.Dir, "team.json")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := channel.ReadStatus(p.Dir, "team"); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a damaged file gives %v", err)
	}
	p.Run("team", third, "ann")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	awaitSent(t, third, 3)
}

// noApprovals is a store in which nobody asks. A real one cannot be opened where time is simulated.
type noApprovals struct{ channel.Store }

func (noApprovals) Approvals(context.Context, belay.ApprovalFilter) iter.Seq2[belay.Approval, error] {
	return func(func(belay.Approval, error) bool) {}
}

// Connections are opened again with growing pauses, for as long as the channel runs. A connection
// that lasts resets the pause. One that ends at once does not.
//
// SPEC N-02
func TestPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newChat()
		runner, err := channel.New("team", c, noApprovals{}, &channel.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		c.opened = make(chan struct{}, 1)
		go func() { defer close(ended); runner.Run(ctx) }()
		<-c.opened
		var pauses []time.Duration
		for _, lasts := range []time.Duration{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, time.Minute, 5 * time.Minute, 0, time.Hour} {
			synctest.Wait() // the connection is open
			<-time.After(lasts)
			c.breaks <- errors.New("the network is down")
			began := time.Now()
			<-c.opened
			pauses = append(pauses, time.Since(began).Round(time.Second))
		}
		const second, most = time.Second, 5 * time.Minute
		want := []time.Duration{second, 2 * second, 4 * second, 8 * second, 16 * second, 32 * second, 64 * second, 128 * second, 256 * second, most, most, most, most, second, 2 * second, second}
		if !slices.Equal(pauses, want) {
			t.Errorf("the pauses are %v, want %v", pauses, want)
		}
		cancel()
		<-ended
	})
}

// A text that does not fit is cut. The message says so and where to see everything, and people can
// deny there, but neither approve nor answer.
//
// SPEC N-01, N-02
func TestCutTexts(t *testing.T) {
	t.Parallel()
	long, options := strings.Repeat("x", 1600), `["`+strings.Repeat("a", 200)+`", "b"]`
	for _, test := range []struct {
		rule, tool, input string
		answer            channel.Answer
		cut, refused      bool
		detail            string
	}{
		{"a cut command cannot be approved", "shell", `{"command": "` + long + `"}`, channel.Answer{Allow: true}, true, true, "… (102 more characters)"},
		{"a cut command can be denied", "shell", `{"command": "` + long + `"}`, channel.Answer{}, true, false, ""},
		{"a cut command can be denied with a reason", "shell", `{"command": "` + long + `"}`, channel.Answer{Typed: true, Text: "no"}, true, false, ""},
		{"characters count as the services count them", "shell", `{"command": "` + strings.Repeat("😀", 800) + `"}`, channel.Answer{Allow: true}, true, true, "… (51 more characters)"},
		{"a cut question cannot be answered", "ask_user", `{"question": "` + long + `"}`, channel.Answer{Typed: true, Text: "yes"}, true, true, ""},
		{"an option of a cut question cannot be chosen", "ask_user", `{"question": "` + long + `", "options": ["a", "b"]}`, channel.Answer{Allow: true, Option: 1}, true, true, ""},
		{"long options are listed", "ask_user", `{"question": "Which?", "options": ` + options + `}`, channel.Answer{Allow: true, Option: 2}, false, false, "Which?\n\n1. " + strings.Repeat("a", 200) + "\n2. b"},
		{"a text that fits can be approved", "shell", `{"command": "` + strings.Repeat("x", 1498) + `"}`, channel.Answer{Allow: true}, false, false, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			p, c := channeltest.New(t), newChat()
			approval := p.Ask("s", test.tool, test.input)
			p.Run("team", c, "ann")
			sent := awaitSent(t, c, 1)[0]
			hint := ""
			if test.cut {
				hint = "The text is too long for this channel and was cut, so you can only deny here. To see everything and decide, open " + channeltest.Link(approval.ID) + " or run: belay approvals show " + approval.ID
			}
			if sent.Cut != test.cut || sent.Hint() != hint || !strings.HasSuffix(sent.Detail, test.detail) {
				t.Errorf("the request is %+v with the hint %q", sent, sent.Hint())
			}
			test.answer.Key, test.answer.User = sent.Key, "ann"
			reply := c.press(&test.answer)
			if reply.Refused != test.refused || test.refused && reply.Text != hint || (p.Decision(approval.ID) == nil) != test.refused {
				t.Errorf("the reply is %+v, and the decision %+v", reply, p.Decision(approval.ID))
			}
		})
	}
}

// People also talk about other things. A text that is not about a request gets no reply, and nobody
// is recorded. A button without a request gets one.
//
// SPEC N-02
func TestUnknownPlaces(t *testing.T) {
	t.Parallel()
	p, c := channeltest.New(t), newChat()
	approval := p.Ask("s", "shell", `{"command": "x"}`)
	runner, _ := p.Run("team", c, "ann")
	awaitSent(t, c, 1)
	for _, user := range []string{"ann", "eve"} {
		if reply := c.press(&channel.Answer{Place: "elsewhere", User: user, Text: "lunch?", Typed: true}); reply.Text != "" || !reply.Refused {
			t.Errorf("a text of %s gets the reply %+v", user, reply)
		}
	}
	if reply := c.press(&channel.Answer{Key: "unknown", User: "ann", Allow: true}); !reply.Refused || !strings.Contains(reply.Text, "no longer known") {
		t.Errorf("an unknown button gets the reply %+v", reply)
	}
	if status := runner.Status(); len(status.Refused) != 0 || p.Decision(approval.ID) != nil {
		t.Errorf("the status is %+v", status)
	}
}
