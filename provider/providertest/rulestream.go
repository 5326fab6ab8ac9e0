package providertest

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/belay-run/belay"
)

// streamRules check answers that arrive in pieces, and answers that end too early.
var streamRules = []rule{
	{"text arrives in pieces, and then complete", func(s *scene) {
		s.user("hello")
		response, o := s.answer(Reply{Parts: []Part{Text("Good ", "morning", "!")}})
		s.wantParts(response.Parts, belay.Text("Good morning!"))
		var pieces []string
		for _, c := range o.chunks {
			if c.Text != "" {
				pieces = append(pieces, c.Text)
			}
		}
		s.wantEqual("the pieces of text", pieces, []string{"Good ", "morning", "!"})
		s.wantEqual("the stop reason", response.StopReason, belay.StopEnd)
	}},
	{"characters are intact wherever the stream is split", func(s *scene) {
		const text = "Grüße, 世界, 👩‍👩‍👧 and e\u0301; \u2028 \\ \" </b>"
		input := `{"at":"` + "世界 👩‍👩‍👧 \\u00e9" + `"}`
		for size := 1; size <= 5; size++ {
			s.talk.Messages = nil
			s.user(text)
			response, o := s.answer(Reply{Flush: size, Parts: []Part{Text(strings.Split(text, "")...), Call("c1", "look", strings.Split(input, "")...)}})
			s.wantParts(response.Parts, belay.Text(text), called("c1", "look", input))
			s.wantEqual("the pieces of text", o.text(func(c belay.Chunk) string { return c.Text }), text)
			r := s.last()
			s.wantEqual("what the user said", heard(&r, belay.RoleUser, belay.PartText), []belay.Part{belay.Text(text)})
		}
	}},
	{"a slow stream is passed on as it arrives", func(s *scene) {
		s.user("hello")
		on := make(chan struct{})
		s.script(Reply{Parts: []Part{Text("first ", "second")}, Hold: &Hold{After: 1, Until: on}})
		var got []string
		ctx, cancel := context.WithTimeout(s.Context(), s.patience)
		defer cancel()
		for chunk, err := range s.model.Stream(ctx, &s.talk) {
			if err != nil {
				s.Fatalf("the request failed: %v", err)
			}
			if got = append(got, chunk.Text); chunk.Text == "first " {
				close(on) // the server sends the rest only now
			}
		}
		s.wantEqual("the text", strings.Join(got, ""), "first second")
	}},
	{"a ping is an empty chunk", func(s *scene) {
		for after := range 2 { // before the answer, and in the middle of it
			s.talk.Messages = nil
			s.user("hello")
			on := make(chan struct{})
			s.script(Reply{Parts: []Part{Text("first ", "second")}, Hold: &Hold{After: after, Until: on, Ping: 5 * time.Millisecond}})
			signs, text := 0, ""
			ctx, cancel := context.WithTimeout(s.Context(), s.patience)
			defer cancel()
			for chunk, err := range s.model.Stream(ctx, &s.talk) {
				if err != nil {
					s.Fatalf("after %d pieces and %d signs of life the request failed: %v", after, signs, err)
				}
				if text += chunk.Text; chunk != (belay.Chunk{}) {
					continue
				}
				if signs++; signs == 10 { // before the first piece, other events can be empty chunks too
					close(on)
				}
			}
			s.wantEqual("the text", text, "first second")
		}
	}},
	{"an error in the stream is a failure of its kind", func(s *scene) {
		s.user("hello")
		for _, kind := range []belay.ModelErrorKind{belay.ModelOverloaded, belay.ModelServer} {
			for after := range 2 { // every protocol sends at least one event per piece
				s.fails(Reply{Parts: []Part{Text("Good ", "morning!")}, Break: &Break{After: after, Error: kind}}, kind)
			}
		}
	}},
	{"a connection that drops at any event is a failure of the network", func(s *scene) { breakEverywhere(s, false) }},
	{"a stream that ends early at any event is a failure of the network", func(s *scene) { breakEverywhere(s, true) }},
	{"cancelling a slow stream ends the request", func(s *scene) {
		s.leavesNothing(func(ctx context.Context) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			s.user("hello")
			s.script(Reply{Parts: []Part{Text("one ", "two")}, Hold: &Hold{After: 1}})
			s.wantCancelled(ctx, func(chunk belay.Chunk) {
				if chunk.Text != "" {
					cancel()
				}
			})
		})
	}},
	{"cancelling between two events that are far apart ends the request", func(s *scene) {
		s.leavesNothing(func(ctx context.Context) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			s.user("hello")
			s.script(Reply{Parts: []Part{Text(strings.Split(strings.Repeat("many words ", 5000), " ")...)}, Delay: 5 * time.Millisecond})
			s.wantCancelled(ctx, func(chunk belay.Chunk) {
				if chunk.Text != "" {
					cancel()
				}
			})
		})
	}},
	{"leaving at the first chunk ends the request", func(s *scene) {
		s.leavesNothing(func(ctx context.Context) {
			s.user("hello")
			s.script(Reply{Parts: []Part{Text("one ", "two")}, Hold: &Hold{After: 1}})
			for _, err := range s.model.Stream(ctx, &s.talk) {
				if err != nil {
					s.Errorf("the request failed: %v", err)
				}
				break
			}
			s.wantDone()
		})
	}},
	{"leaving in the middle of a burst ends the request", func(s *scene) {
		s.leavesNothing(func(ctx context.Context) {
			s.user("hello")
			s.script(Reply{Parts: []Part{Text(strings.Split(strings.Repeat("many words ", 1000), " ")...)}})
			next, stop := iter.Pull2(s.model.Stream(ctx, &s.talk))
			for range 10 {
				if _, err, ok := next(); err != nil || !ok {
					s.Errorf("the response ended: %v", err)
				}
			}
			stop()
			s.wantDone()
		})
	}},
}

// breakEverywhere breaks off a stream at each of its events in turn.
func breakEverywhere(s *scene, clean bool) {
	s.Helper()
	reply := Reply{Parts: []Part{Thinking("Left", " or right?"), Text("Left."), Call("c1", "look", `{"at":`, `"left"}`), Call("c2", "wait")}}
	s.user("look")
	for after := range 1000 {
		broken := reply
		broken.Break = &Break{After: after, Clean: clean}
		s.script(broken)
		o := s.ask(s.Context())
		if o.err == nil {
			if s.last().Broken {
				s.Fatalf("after %d events: the provider took the response for complete: %s", after, shown(o.response))
			}
			if o.response == nil {
				s.Fatalf("after %d events: there is neither a response nor an error", after)
			}
			s.wantParts(o.response.Parts, thought("Left or right?"), belay.Text("Left."), called("c1", "look", `{"at":"left"}`), called("c2", "wait", `{}`))
			return
		}
		if e, ok := o.err.(*belay.ModelError); !ok || e.Kind != belay.ModelNetwork { //nolint:errorlint // it must be the error itself
			s.Errorf("after %d events: want an error of kind %s, got %v", after, belay.ModelNetwork, o.err)
		}
	}
	s.Errorf("the response is never complete")
}
