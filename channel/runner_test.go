package channel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
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
	replies  chan channel.Reply
}

func newChat() *chat {
	return &chat{outcomes: make(map[string]string), answers: make(chan *channel.Answer), replies: make(chan channel.Reply)}
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

func (c *chat) Receive(ctx context.Context, connected func(), answer func(context.Context, *channel.Answer) channel.Reply) error {
	connected()
	for {
		select {
		case a := <-c.answers:
			c.replies <- answer(ctx, a)
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

// run runs a channel until the returned function is called.
func run(t *testing.T, p *channeltest.Project, c *chat) (stop func(), runner *channel.Runner) {
	t.Helper()
	runner, err := channel.New("team", c, p.Store, &channel.Options{
		Dir: filepath.Join(p.Dir, "channels"), Approvers: []string{"ann"}, Poll: 5 * time.Millisecond, Pause: time.Millisecond,
		Link: func(approval string) string { return "https://belay.example.com/approvals/" + approval },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop, runner
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
		{"control characters are removed", "shell", `{"command": "a\u001b[2Jb\u202ec"}`, channel.Request{Title: "shell needs approval", Detail: "$ a[2Jbc", Reason: "it changes things"}},
		{"a long command is cut", "shell", `{"command": "` + strings.Repeat("x", 5000) + `"}`, channel.Request{Title: "shell needs approval", Detail: "$ " + strings.Repeat("x", 1498) + "… (3502 more characters)", Reason: "it changes things"}},
		{"every field of a command is shown", "shell", `{"command": "ls", "host": "prod", "n": 3}`, channel.Request{Title: "shell needs approval", Detail: "$ ls\nhost: prod\nn: 3", Reason: "it changes things"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			p, c := channeltest.New(t), newChat()
			approval := p.Ask("s", test.tool, test.input)
			run(t, p, c)
			got := awaitSent(t, c, 1)[0]
			if got.Approval != approval.ID || got.Session != "s" || got.Key == "" || len(got.Key) > 32 || got.Link != "https://belay.example.com/approvals/"+approval.ID {
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
			_, runner := run(t, p, c)
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
	run(t, p, c)
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
	stop, _ := run(t, p, c)
	sent := awaitSent(t, c, 2)
	stop()
	third := p.Ask("c", "shell", `{"command": "z"}`)
	p.Decide(&first, true, "bob")
	stop, _ = run(t, p, c)
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
	run(t, p, c)
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
		run(t, p, c)
		awaitSent(t, c, 1)
		c.mu.Lock()
		c.fails = 2
		c.mu.Unlock()
		p.Decide(&approval, true, "bob")
		channeltest.Eventually(t, "the message shows it", func() bool { return c.outcome("place 1") == "Approved by bob" })
	})
	t.Run("there is an end", func(t *testing.T) {
		t.Parallel()
		p, c := channeltest.New(t), newChat()
		c.fails, c.failure = 1000, errors.New("no such chat")
		approval := p.Ask("s", "shell", `{"command": "x"}`)
		runner, err := channel.New("team", c, p.Store, &channel.Options{Dir: p.Dir, Poll: time.Millisecond, Pause: time.Nanosecond})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- runner.Run(ctx) }()
		channeltest.Eventually(t, "it gives up", func() bool {
			all := runner.Status().Deliveries
			return len(all) == 1 && all[0].GaveUp && all[0].Attempts == 20 && all[0].Error == "no such chat"
		})
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if c.mu.Lock(); c.fails != 980 {
			t.Errorf("there were %d attempts, want 20", 1000-c.fails)
		}
		c.mu.Unlock()
		if p.Decision(approval.ID) != nil {
			t.Error("a channel that is down has decided")
		}
	})
	t.Run("a panic is a failure", func(t *testing.T) {
		t.Parallel()
		p, c := channeltest.New(t), newChat()
		c.panics = true
		p.Ask("s", "shell", `{"command": "x"}`)
		_, runner := run(t, p, c)
		channeltest.Eventually(t, "it is recorded", func() bool {
			all := runner.Status().Deliveries
			return len(all) == 1 && all[0].Error == "panic: in Send"
		})
	})
}

// One process at a time runs a channel, and a damaged file is an error that says what to do.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	p, c := channeltest.New(t), newChat()
	p.Ask("s", "shell", `{"command": "x"}`)
	stop, _ := run(t, p, c)
	awaitSent(t, c, 1)
	dir := filepath.Join(p.Dir, "channels")
	second, err := channel.New("team", newChat(), p.Store, &channel.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context()); !errors.Is(err, channel.ErrRunning) {
		t.Errorf("a second process gets %v", err)
	}
	stop()
	if err := os.WriteFile(filepath.Join(dir, "team.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a damaged file gives %v", err)
	}
}
