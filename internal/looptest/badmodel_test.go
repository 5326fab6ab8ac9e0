package looptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// modelFunc makes a model from a function.
type modelFunc func(ctx context.Context, req *belay.Request, yield func(belay.Chunk, error) bool)

func (f modelFunc) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) { f(ctx, req, yield) }
}

// badOnce returns a model that gives a bad response to "bad", and a good one to anything
// else. It checks that every request is well formed.
func badOnce(t *testing.T, bad func(yield func(belay.Chunk, error) bool)) belay.Model {
	return modelFunc(func(_ context.Context, req *belay.Request, yield func(belay.Chunk, error) bool) {
		if fault := conversationFault(req.Messages); fault != "" {
			t.Errorf("a request is not well formed: %s", fault)
		}
		last := req.Messages[len(req.Messages)-1]
		if last.Kind == belay.KindUser && last.Text() == "bad" {
			bad(yield)
			return
		}
		yield(belay.Chunk{Response: &belay.Response{Parts: []belay.Part{belay.Text("good")}, StopReason: belay.StopEnd}}, nil)
	})
}

func whole(parts ...belay.Part) func(func(belay.Chunk, error) bool) {
	return func(yield func(belay.Chunk, error) bool) {
		yield(belay.Chunk{Response: &belay.Response{Parts: slices.Clone(parts)}}, nil)
	}
}

// Whatever a model answers, the turn ends with a known reason, the transcript is valid for
// every provider, and the session can continue.
//
// SPEC L-05
func TestBadModels(t *testing.T) {
	t.Parallel()
	plain := errors.New("an error of no kind")
	call := func(c belay.CallPart) belay.Part { return belay.Part{Type: belay.PartCall, Call: &c} }
	for _, test := range []struct {
		rule  string
		bad   func(yield func(belay.Chunk, error) bool)
		want  belay.EndReason
		class string // the class at the phase error
		tries int
		text  string // the text of the turn
	}{
		{"one that streams nothing is tried again and then given up", func(func(belay.Chunk, error) bool) {}, belay.EndError, "model.empty", 3, ""},
		{"one that ends without a response likewise", func(yield func(belay.Chunk, error) bool) {
			yield(belay.Chunk{Text: "half an"}, nil)
		}, belay.EndError, "model.empty", 3, ""},
		{"one that answers with no parts likewise", whole(), belay.EndError, "model.empty", 3, ""},
		{"an error of no kind is not tried again", func(yield func(belay.Chunk, error) bool) {
			yield(belay.Chunk{}, plain)
		}, belay.EndError, "model.invalid", 1, ""},
		{"a cancel that nobody asked for is an error", func(yield func(belay.Chunk, error) bool) {
			yield(belay.Chunk{}, context.Canceled)
		}, belay.EndError, "model.invalid", 1, ""},
		{"empty text is no answer", whole(belay.Text("")), belay.EndTurn, "", 1, "(no answer)"},
		{"nor is white space", whole(belay.Text(" \n")), belay.EndTurn, "", 1, "(no answer)"},
		{"text that is not UTF-8 is mended", whole(belay.Text("a\xffb")), belay.EndTurn, "", 1, "a\uFFFDb"},
		{"a call without an id, an input or a tool is answered", whole(call(belay.CallPart{})), belay.EndTurn, "", 2, "good"},
		{"calls with the same id get different ids", whole(call(belay.CallPart{ID: "x", Tool: "read"}), call(belay.CallPart{ID: "x", Tool: "read"})), belay.EndTurn, "", 2, "good"},
		{"a call whose input is no object is answered", whole(call(belay.CallPart{ID: "x", Tool: "read", Input: json.RawMessage(`[1`)})), belay.EndTurn, "", 2, "good"},
		{"a call whose names are not UTF-8 is answered", whole(call(belay.CallPart{ID: "\xff", Tool: "re\xffad"})), belay.EndTurn, "", 2, "good"},
		{"a call part without a call is left out", whole(belay.Text("hm"), belay.Part{Type: belay.PartCall}), belay.EndTurn, "", 1, "hm"},
		{"a result in a response is left out", whole(belay.Text("hm"), belay.Part{Type: belay.PartResult, Result: &belay.ResultPart{Call: "x"}}), belay.EndTurn, "", 1, "hm"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log := new(phaseLog)
				agent := agentOf(t, badOnce(t, test.bad), &belay.Options{
					Tools: []belay.Tool{echoTool("read")}, Hooks: log.everywhere(), Retry: hook.Retry{Attempts: 3, Delay: 1},
				})
				s := agent.Session("s")
				turn, err := s.Turn(t.Context(), "bad")
				if turn.Reason != test.want || (err != nil) != (test.want == belay.EndError) || turn.Text != test.text {
					t.Errorf("the turn is %+v, %v", turn, err)
				}
				if n := log.count("model.pre"); n != test.tries {
					t.Errorf("the model was asked %d times, want %d", n, test.tries)
				}
				for _, f := range log.all() {
					if f.name == "error" && f.input["class"] != test.class {
						t.Errorf("the phase error got %v, want %q", f.input["class"], test.class)
					}
				}
				for _, m := range transcript(t, s) {
					for _, c := range m.Calls() {
						if c.ID == "" || !isUTF8(c.ID) || !isUTF8(c.Tool) || !json.Valid(c.Input) {
							t.Errorf("the call %+v was stored", c)
						}
					}
				}
				if turn, err := s.Turn(t.Context(), "again"); err != nil || turn.Text != "good" {
					t.Errorf("the next turn is %+v, %v", turn, err)
				}
				storedResults(t, s)
			})
		})
	}
}

func isUTF8(text string) bool { return strings.ToValidUTF8(text, "") == text }

// If a model hangs, the turn waits until it is aborted.
//
// SPEC L-05
func TestAModelThatHangsIsAborted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := scripted.New([]scripted.Step{{Text: "so far so", Fault: &scripted.Fault{Hang: true, After: 2}}, says("fine")}, nil)
		s := agentOf(t, model, nil).Session("s")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		texts := 0
		for event, err := range s.Run(ctx, "hi") {
			if event.Kind == belay.EventTextDelta {
				if texts++; texts == 2 {
					cancel()
				}
			}
			if event.End != nil && event.End.Reason != belay.EndAborted {
				t.Errorf("the turn ended %s", event.End.Reason)
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		takeTurn(t, s.Run(t.Context(), "again"), belay.EndTurn)
		if stored := transcript(t, s); len(stored) != 3 {
			t.Errorf("%d messages are stored, want no half answer", len(stored))
		}
	})
}

// An invalid message is rejected before anything is sent or stored.
func TestMessagesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule  string
		text  string
		parts []belay.Part
		want  string
	}{
		{"an empty message", "", nil, "empty"},
		{"text that is not UTF-8", "a\xff", nil, "UTF-8"},
		{"a text part that is not UTF-8", "a", []belay.Part{belay.Text("\xff")}, "UTF-8"},
		{"an image without data", "a", []belay.Part{belay.Image("image/png", nil)}, "MIME"},
		{"an image without a type", "a", []belay.Part{belay.Image("", []byte{1})}, "MIME"},
		{"a media part without media", "a", []belay.Part{{Type: belay.PartMedia}}, "MIME"},
		{"a call", "a", []belay.Part{{Type: belay.PartCall, Call: &belay.CallPart{ID: "x"}}}, "not \"tool_call\""},
		{"a result", "a", []belay.Part{{Type: belay.PartResult, Result: &belay.ResultPart{}}}, "not \"tool_result\""},
		{"a part of no type", "a", []belay.Part{{Text: "a"}}, "not \"\""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			log := new(phaseLog)
			agent, model := newAgent(t, &belay.Options{Hooks: log.everywhere()})
			s := agent.Session("s")
			turn, err := s.Turn(t.Context(), test.text, test.parts...)
			if err == nil || !strings.Contains(err.Error(), test.want) || turn.Reason != belay.EndError || turn.ID != "" {
				t.Errorf("the turn is %+v, %v", turn, err)
			}
			if log.count("user.prompt.submit")+log.count("turn.post_turn")+len(model.Requests())+len(transcript(t, s)) > 0 {
				t.Errorf("phases fired (%v), or something was asked or stored", log.all())
			}
			takeTurn(t, s.Run(t.Context(), "hi"), belay.EndTurn)
		})
	}
}

// A session runs one turn at a time. A setting decides whether other turns wait in order or
// are rejected.
//
// SPEC L-02
func TestTurnsAtTheSameTime(t *testing.T) {
	t.Parallel()
	for _, refuse := range []bool{false, true} {
		t.Run(map[bool]string{false: "wait", true: "refuse"}[refuse], func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				gate := make(chan struct{})
				model := modelFunc(func(_ context.Context, _ *belay.Request, yield func(belay.Chunk, error) bool) {
					<-gate
					yield(belay.Chunk{Response: &belay.Response{Parts: []belay.Part{belay.Text("ok")}}}, nil)
				})
				s := agentOf(t, model, &belay.Options{RefuseBusy: refuse}).Session("s")
				texts := []string{"a", "b", "c", "d"}
				errs := make([]error, len(texts))
				done := make(chan int, len(texts))
				for i, text := range texts {
					go func() {
						_, errs[i] = s.Turn(t.Context(), text)
						done <- i
					}()
					synctest.Wait()
				}
				close(gate)
				for range texts {
					<-done
				}
				var said []string
				for _, m := range transcript(t, s) {
					if m.Kind == belay.KindUser {
						said = append(said, m.Text())
					}
				}
				want := texts
				if refuse {
					want = texts[:1]
				}
				if !slices.Equal(said, want) {
					t.Errorf("the turns taken are %v, want %v", said, want)
				}
				for i, err := range errs {
					if refused := errors.Is(err, belay.ErrBusy); refused != (i >= len(want)) || err != nil && !refused {
						t.Errorf("turn %d: %v", i, err)
					}
				}
			})
		})
	}
}

// A turn that waits for its session can be aborted.
//
// SPEC L-02
func TestATurnThatWaitsIsAborted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := scripted.New([]scripted.Step{{Fault: &scripted.Fault{Hang: true}}, says("fine")}, nil)
		s := agentOf(t, model, nil).Session("s")
		first, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := s.Turn(first, "a"); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
		synctest.Wait()
		waiting, give := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		give(enough)
		if turn, err := s.Turn(waiting, "b"); turn.ID != "" || !errors.Is(err, enough) {
			t.Errorf("the turn that waited: %+v, %v", turn, err)
		}
		stop()
		<-done
		takeTurn(t, s.Run(t.Context(), "c"), belay.EndTurn)
	})
}

// A closed session runs no turn. Agent.Session with the same id returns a new session,
// which continues from the store.
func TestATurnAfterClose(t *testing.T) {
	t.Parallel()
	agent, _ := newAgent(t, nil, says("one"), says("two"))
	s := agent.Session("s")
	takeTurn(t, s.Run(t.Context(), "a"), belay.EndTurn)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if turn, err := s.Turn(t.Context(), "b"); turn.ID != "" || turn.Reason != belay.EndError || !errors.Is(err, belay.ErrClosed) {
		t.Errorf("a turn after close: %+v, %v", turn, err)
	}
	if all := take(s.Run(t.Context(), "b")); !errors.Is(all.err, belay.ErrClosed) || len(all.events) > 0 {
		t.Errorf("a stream after close: %v, %v", all.events, all.err)
	}
	again := agent.Session("s")
	takeTurn(t, again.Run(t.Context(), "b"), belay.EndTurn)
	if n := len(transcript(t, again)); n != 4 {
		t.Errorf("%d messages are stored, want 4", n)
	}
}
