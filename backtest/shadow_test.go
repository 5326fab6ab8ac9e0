package backtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/backtest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// A backtest asks a hook what the hook was asked as a shadow in real turns, and gets the same
// answers. Switched on, the hook changes exactly the calls, messages and results to which its
// shadow had objected, unless something else had already denied them or asked about them.
//
// SPEC O-02, H-21
func TestAShadowRunGivesTheSameAnswers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		words := []string{"prod", "live", "drafts", "team", "outside"}
		s := &shadowed{
			kind: rapid.SampledFrom([]string{"denies", "asks", "fails", "adds", "hides", "blocks"}).Draw(rt, "tried"), word: rapid.SampledFrom(words).Draw(rt, "word"),
			otherKind: rapid.SampledFrom([]string{"denies", "asks", "adds"}).Draw(rt, "other"), otherWord: rapid.SampledFrom(words).Draw(rt, "other word"),
		}
		if s.kind == "blocks" {
			s.word = rapid.SampledFrom([]string{"1", "2", "3"}).Draw(rt, "task")
		}
		live, replayed := &witness{said: make(map[string]string)}, &witness{said: make(map[string]string)}
		others := []hook.Subscription{changes(s.otherKind, s.otherWord), approves(belay.Allow("fine"))}

		store, changed := memstore.New(nil), 0
		for i := range rapid.IntRange(1, 4).Draw(rt, "sessions") {
			var turns [][]scripted.Call // with one call each, so that a record of a hook is about one call
			for n := range rapid.IntRange(1, 3).Draw(rt, "turns") {
				c := shadowedCall{
					session: fmt.Sprintf("s%d", i), call: fmt.Sprintf("call-%d", n), prompt: fmt.Sprintf("task %d", n+1),
					tool: rapid.SampledFrom([]string{"note", "send"}).Draw(rt, "tool"), to: rapid.SampledFrom(words).Draw(rt, "to"),
				}
				turns = append(turns, []scripted.Call{{ID: c.call, Tool: c.tool, Input: fmt.Sprintf(`{"to":%q}`, c.to)}})
				s.calls = append(s.calls, c)
				if s.other(&c) != "" {
					changed++
				}
			}
			record(t, store, fmt.Sprintf("s%d", i), belay.Options{Hooks: append([]hook.Subscription{s.tried(live, true)}, others...)}, turns...)
		}

		report := run(t, store, &backtest.Policy{Hooks: append([]hook.Subscription{s.tried(replayed, true)}, others...)}, nil)
		if len(report.Differences) != 0 {
			rt.Fatalf("the same hooks differ:\n%s", strings.Join(lines(report), "\n"))
		}
		if diff := cmp.Diff(live.said, replayed.said); diff != "" {
			rt.Fatalf("the answers (-live +backtest):\n%s", diff)
		}
		if diff := cmp.Diff(totalOf(rt, store), counts(report)); diff != "" {
			rt.Fatalf("the totals (-journal +backtest):\n%s", diff)
		}
		on := run(t, store, &backtest.Policy{Hooks: append([]hook.Subscription{s.tried(&witness{said: make(map[string]string)}, false)}, others...)}, nil)
		var got []string
		for i := range on.Differences {
			d := &on.Differences[i]
			reason := ""
			if d.Now.By == "tried" && s.kind != "fails" { // the reason of a failure is Belay's own
				reason = ": " + d.Now.Reason
			}
			got = append(got, fmt.Sprintf("%s %s %s: %s -> %s%s", d.Session, d.Kind, d.Call, d.Was.Outcome, told(&d.Now), reason))
		}
		if diff := cmp.Diff(s.expected(live), got); diff != "" {
			rt.Fatalf("with the hook switched on (-shadow +backtest):\n%s", diff)
		}
		without := run(t, store, &backtest.Policy{Hooks: []hook.Subscription{s.tried(replayed, true), others[1]}}, nil)
		if len(without.Differences) != changed {
			rt.Fatalf("the hook that %s changed %d calls, but without it %d differ:\n%s", s.otherKind, changed, len(without.Differences), strings.Join(lines(without), "\n"))
		}
	})
}

// shadowed is one drawn case: a hook that runs as a shadow beside another hook.
type shadowed struct {
	kind, word, otherKind, otherWord string
	calls                            []shadowedCall
}

type shadowedCall struct{ session, call, prompt, tool, to string }

// witness keeps what a hook answered, by the session and the call or the message.
type witness struct {
	mu   sync.Mutex
	said map[string]string
}

func (w *witness) keep(session, about, said string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said[session+" "+about] = said
}

// tried returns the hook that is tried.
func (s *shadowed) tried(w *witness, shadow bool) hook.Subscription {
	opts := &hook.Options{Shadow: shadow, Capabilities: hook.CanAsk | hook.CanBlock | hook.CanRewriteInput}
	switch s.kind {
	case "hides":
		opts.Capabilities = hook.CanRewriteOutput
		return belay.ToolPost.On("tried", func(_ context.Context, r belay.ToolResult) (belay.ToolReaction, error) {
			if !strings.Contains(r.Text(), s.word) {
				w.keep(r.Session(), r.ID(), "")
				return belay.ToolReaction{}, nil
			}
			text := strings.ReplaceAll(r.Text(), s.word, "***")
			w.keep(r.Session(), r.ID(), text)
			return belay.RewriteResult(text), nil
		}, opts)
	case "blocks":
		opts.Capabilities = hook.CanBlock
		return belay.UserPromptSubmit.On("tried", func(_ context.Context, p belay.UserPrompt) (belay.PromptVerdict, error) {
			if !strings.Contains(p.Text(), s.word) {
				w.keep(p.Session(), p.Text(), "")
				return belay.PromptVerdict{}, nil
			}
			w.keep(p.Session(), p.Text(), "not "+s.word)
			return belay.DenyPrompt("not " + s.word), nil
		}, opts)
	}
	return belay.ToolPre.On("tried", func(_ context.Context, call belay.ToolCall) (v belay.ToolVerdict, err error) {
		text, said := string(call.Input()), ""
		if strings.Contains(text, s.word) {
			switch s.kind {
			case "denies":
				v = belay.Deny("no " + s.word)
			case "asks":
				v = belay.Ask("look at " + s.word)
			case "adds":
				v.Input = []byte(strings.TrimSuffix(text, "}") + `,"tried":true}`)
			default:
				err = errors.New("broken by " + s.word)
				said = err.Error()
			}
			said += v.Reason + string(v.Input)
		}
		w.keep(call.Session(), call.ID(), said)
		return v, err
	}, opts)
}

// other returns what the other hook does with a call: "" if nothing.
func (s *shadowed) other(c *shadowedCall) string {
	if c.tool == "note" && c.to == s.otherWord {
		return s.otherKind
	}
	return ""
}

// expected returns the differences that the answers of the shadow foretell.
func (s *shadowed) expected(live *witness) (all []string) {
	for i := range s.calls {
		c := &s.calls[i]
		input, was := fmt.Sprintf(`{"to":%q`, c.to), map[string]string{"denies": "denied", "asks": "asked"}[s.other(c)]
		if was == "" {
			was = "allowed"
		}
		if s.other(c) == "adds" {
			input += `,"careful":true`
		}
		differs := func(kind, now string) {
			id := c.call
			if kind == "prompt" {
				id, was = "", "allowed"
			}
			all = append(all, fmt.Sprintf("%s %s %s: %s -> %s", c.session, kind, id, was, now))
		}
		rewritten, said := "", live.said[c.session+" "+c.call]
		if s.other(c) == "adds" {
			rewritten = " as " + input + "}"
		}
		switch {
		case s.kind == "blocks":
			if reason := live.said[c.session+" "+c.prompt]; reason != "" {
				differs("prompt", "denied by tried: "+reason)
			}
		case s.kind == "hides":
			if said != "" {
				was = "kept"
				differs("result", fmt.Sprintf("kept as %q", said))
			}
		case was == "denied" || said == "":
		case s.kind == "asks" && was == "asked":
		case s.kind == "asks":
			differs("call", "asked by tried, approved by auto"+rewritten+": "+said)
		case s.kind == "adds" && was == "asked":
			differs("call", "asked by note, approved by auto as "+input+`,"tried":true}`)
		case s.kind == "adds":
			differs("call", "allowed as "+input+`,"tried":true}`)
		case s.kind == "denies":
			differs("call", "denied by tried"+rewritten+": "+said)
		default:
			differs("call", "denied by tried"+rewritten)
		}
	}
	return all
}

// counts are the counts of the hook that is tried in a report.
func counts(r *backtest.Report) (all [4]int) {
	if at := slices.IndexFunc(r.Hooks, func(h backtest.HookTotal) bool { return h.ID == "tried" }); at >= 0 {
		h := r.Hooks[at]
		all = [4]int{h.Denied, h.Asks, h.Failed, h.Rewrote}
	}
	return all
}

// totalOf counts the same in the journal of the real turns.
func totalOf(rt *rapid.T, store *memstore.Store) (all [4]int) {
	for r, err := range store.Journal().(hook.ListJournal).List(rt.Context(), hook.Filter{Subscription: "tried"}) {
		switch {
		case err != nil:
			rt.Fatal(err)
		case !r.Shadow:
			rt.Fatal("the hook was no shadow")
		}
		if r.Severity == hook.SeverityDeny {
			all[0]++
		}
		if r.Severity == hook.SeverityAsk {
			all[1]++
		}
		if r.State == hook.Failed {
			all[2]++
		}
		if len(r.Contributed) > 0 && (r.Contributed[0].Kind == "input" || r.Contributed[0].Kind == "result") {
			all[3]++
		}
	}
	return all
}

// changes returns a hook that denies, asks about or adds a field to the calls of note with a
// word. The one that asks has the name of the tool.
func changes(kind, word string) hook.Subscription {
	if kind == "denies" {
		return denies("other", "note", word)
	}
	id := map[string]string{"asks": "note", "adds": "other"}[kind]
	return belay.ToolPre.On(id, func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
		switch text := string(call.Input()); {
		case !strings.Contains(text, word):
			return belay.Pass, nil
		case kind == "asks":
			return belay.Ask("look first"), nil
		default:
			return belay.ToolVerdict{Input: []byte(strings.TrimSuffix(text, "}") + `,"careful":true}`)}, nil
		}
	}, &hook.Options{Match: hook.Match{Tools: []string{"note"}}, Capabilities: hook.CanAsk | hook.CanBlock | hook.CanRewriteInput})
}
