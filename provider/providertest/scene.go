package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// scene is what a rule works with: a server, a model that uses it, and a conversation.
type scene struct {
	testing.TB

	server Server
	model  belay.Model
	talk   belay.Request
	// patience is how long a rule waits for something that must happen.
	patience time.Duration
}

func newScene(t testing.TB, patience time.Duration, start func(t testing.TB) Server, open func(t testing.TB, server Server) belay.Model) *scene {
	t.Helper()
	server := start(t)
	// If a model hangs, closing the server ends its request.
	watchdog := time.AfterFunc(3*patience, server.Close)
	t.Cleanup(func() { watchdog.Stop() })
	return &scene{TB: t, server: server, model: open(t, server), patience: patience, talk: belay.Request{
		System: "You are tested.",
		Tools: []belay.ToolDeclaration{
			{Name: "look", Description: "looks at something", InputSchema: json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}}}`)},
			{Name: "wait", Description: "waits", InputSchema: json.RawMessage(`{"type":"object"}`)},
		},
	}}
}

// outcome is the result of a request.
type outcome struct {
	chunks   []belay.Chunk
	response *belay.Response
	err      error
}

// text joins one kind of text from all chunks.
func (o *outcome) text(of func(belay.Chunk) string) string {
	var b strings.Builder
	for _, c := range o.chunks {
		b.WriteString(of(c))
	}
	return b.String()
}

// ask sends the conversation and reads the response.
func (s *scene) ask(ctx context.Context) outcome {
	s.Helper()
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	var o outcome
	for chunk, err := range s.model.Stream(ctx, &s.talk) {
		if o.response != nil || o.err != nil {
			s.Errorf("the sequence continues after its end: chunk %+v, error %v", chunk, err)
		}
		if o.err = err; err == nil {
			o.chunks = append(o.chunks, chunk)
			o.response = chunk.Response
		}
	}
	return o
}

// script scripts replies. It skips the rule if the protocol cannot express one of them.
func (s *scene) script(replies ...Reply) {
	s.Helper()
	for _, reply := range replies {
		if why := s.cannot(reply); why != "" {
			s.Skipf("the protocol cannot express this reply: %s", why)
		}
	}
	s.server.Script(replies...)
}

// cannot returns why the protocol cannot express a reply, or an empty string.
func (s *scene) cannot(reply Reply) string {
	if limited, ok := s.server.(LimitedServer); ok {
		return limited.Cannot(reply)
	}
	return ""
}

// sayable returns the parts that the protocol can express.
func (s *scene) sayable(parts ...Part) []Part {
	return slices.DeleteFunc(parts, func(p Part) bool { return s.cannot(Reply{Parts: []Part{p}}) != "" })
}

// answer scripts a reply and sends the conversation. It adds the response to the
// conversation and returns the response.
func (s *scene) answer(reply Reply) (*belay.Response, outcome) {
	s.Helper()
	s.script(reply)
	o := s.ask(s.Context())
	if o.err != nil {
		s.Fatalf("the request failed: %v", o.err)
	}
	if o.response == nil {
		s.Fatalf("the sequence ended without a response")
	}
	s.say(belay.RoleAssistant, o.response.Parts...)
	return o.response, o
}

// fail scripts a reply that must fail, sends the conversation and returns the error.
func (s *scene) fail(reply Reply, want belay.ModelErrorKind) *belay.ModelError {
	s.Helper()
	s.script(reply)
	o := s.ask(s.Context())
	if o.response != nil {
		s.Errorf("the attempt must fail, but there is a response: %+v", o.response)
	}
	var failure *belay.ModelError
	if !errors.As(o.err, &failure) {
		s.Fatalf("want a *belay.ModelError of kind %s, got %v", want, o.err)
	}
	if failure.Kind != want {
		s.Errorf("want an error of kind %s, got %v", want, failure)
	}
	return failure
}

// fails is like fail, for rules that do not need the error.
func (s *scene) fails(reply Reply, want belay.ModelErrorKind) {
	s.Helper()
	_ = s.fail(reply, want) // fail has checked the error
}

// say adds a message to the conversation.
func (s *scene) say(role belay.Role, parts ...belay.Part) {
	kind := belay.KindUser
	if role == belay.RoleAssistant {
		kind = belay.KindAssistant
	}
	s.talk.Messages = append(s.talk.Messages, &belay.Message{Seq: int64(len(s.talk.Messages) + 1), Role: role, Kind: kind, Parts: parts})
}

// user adds a text of the user to the conversation.
func (s *scene) user(text string) { s.say(belay.RoleUser, belay.Text(text)) }

// result returns the result of a call.
func result(call, tool string, r belay.Result) belay.Part {
	return belay.Part{Type: belay.PartResult, Result: &belay.ResultPart{Call: call, Tool: tool, Result: r}}
}

// last returns the last request. It stops the rule if the server refused the request.
func (s *scene) last() Request {
	s.Helper()
	requests := s.server.Requests()
	if len(requests) == 0 {
		s.Fatalf("the server got no request")
	}
	r := requests[len(requests)-1]
	if r.Refused != "" {
		s.Fatalf("the server refused the request: %s\n%.2000s", r.Refused, r.Body)
	}
	return r
}

// heard returns the parts that the server received, of one role and one type.
func heard(r *Request, role belay.Role, kind belay.PartType) []belay.Part {
	var parts []belay.Part
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if m.Role == role && p.Type == kind {
				parts = append(parts, p)
			}
		}
	}
	return parts
}

// wantEqual compares two values. If they differ, it shows both as JSON.
func (s *scene) wantEqual(what string, got, want any) {
	s.Helper()
	if !reflect.DeepEqual(got, want) {
		s.Errorf("%s: got %s, want %s", what, shown(got), shown(want))
	}
}

// shown returns a value as JSON. It cuts off a long text.
func shown(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%+v", v)
	}
	return fmt.Sprintf("%.1000s", data)
}

// wantParts compares the parts of a response. It ignores their opaque data and provider.
func (s *scene) wantParts(got []belay.Part, want ...belay.Part) {
	s.Helper()
	plain := make([]belay.Part, 0, len(got))
	for _, p := range got {
		p.Opaque, p.Provider = nil, ""
		plain = append(plain, p)
	}
	s.wantEqual("the parts of the response", plain, want)
}

// thought returns a thinking part.
func thought(text string) belay.Part { return belay.Part{Type: belay.PartThinking, Text: text} }

// called returns a part with a call.
func called(id, tool, input string) belay.Part {
	return belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: id, Tool: tool, Input: json.RawMessage(input)}}
}
