package providertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// take is a conversation that every model can have. Its checks must pass whatever the
// model answers.
type take struct {
	name     string
	wrongKey bool
	play     func(r *rehearsal)
}

// wrongKey is a key that no service accepts.
const wrongKey = "not-a-key"

// rehearsal is a conversation during recording or replaying.
type rehearsal struct {
	testing.TB

	model    belay.Model
	talk     belay.Request
	outcomes []recordedOutcome
}

// run plays the conversation and returns its outcomes.
func (k *take) run(t testing.TB, model belay.Model) []recordedOutcome {
	t.Helper()
	r := &rehearsal{TB: t, model: model, talk: belay.Request{
		System: "You take part in a test. Be brief. Use the tools when you are asked to.",
		Tools: []belay.ToolDeclaration{{
			Name: "look", Description: "Looks in a direction and says what is there.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"at":{"type":"string","description":"left or right"}},"required":["at"]}`),
		}},
	}}
	k.play(r)
	return r.outcomes
}

// say adds a message to the conversation.
func (r *rehearsal) say(role belay.Role, parts ...belay.Part) {
	r.talk.Messages = append(r.talk.Messages, &belay.Message{Seq: int64(len(r.talk.Messages) + 1), Role: role, Parts: parts})
}

// ask sends the conversation and stores the outcome.
func (r *rehearsal) ask() (*belay.Response, *belay.ModelError) {
	r.Helper()
	var response *belay.Response
	var failure *belay.ModelError
	for chunk, err := range r.model.Stream(r.Context(), &r.talk) {
		if err != nil && !errors.As(err, &failure) {
			r.Fatalf("the request failed with an error that is not a *belay.ModelError: %v", err)
		}
		if chunk.Response != nil {
			response = chunk.Response
		}
	}
	switch {
	case failure != nil:
		r.outcomes = append(r.outcomes, recordedOutcome{Failure: failure.Kind, Status: failure.Status})
	case response == nil:
		r.Fatalf("the sequence ended without a response")
	default:
		r.outcomes = append(r.outcomes, recordedOutcome{Parts: response.Parts, StopReason: response.StopReason, Usage: response.Usage, Model: response.Model})
	}
	return response, failure
}

// answer sends the conversation and adds the response to the conversation.
func (r *rehearsal) answer() *belay.Response {
	r.Helper()
	response, failure := r.ask()
	if failure != nil {
		r.Fatalf("the request failed: %v", failure)
	}
	r.say(belay.RoleAssistant, response.Parts...)
	return response
}

func calls(response *belay.Response) []*belay.CallPart {
	return (&belay.Message{Parts: response.Parts}).Calls()
}

// use sends results for the model's calls until the model makes no more calls. It reports an
// error if the model made no call.
func (r *rehearsal) use(result func(call *belay.CallPart) belay.Result) {
	r.Helper()
	made := 0
	for range 5 {
		response := r.answer()
		made += len(calls(response))
		if len(calls(response)) == 0 {
			r.wantText(response)
			break
		}
		if response.StopReason != belay.StopToolUse {
			r.Errorf("the stop reason of a response with calls is %s", response.StopReason)
		}
		var parts []belay.Part
		for _, call := range calls(response) {
			parts = append(parts, belay.Part{Type: belay.PartResult, Result: &belay.ResultPart{Call: call.ID, Tool: call.Tool, Result: result(call)}})
		}
		r.say(belay.RoleUser, parts...)
	}
	if made == 0 {
		r.Errorf("the model called no tool")
	}
}

// wantText checks that a response is complete and has text and usage.
func (r *rehearsal) wantText(response *belay.Response) {
	r.Helper()
	text := (&belay.Message{Parts: response.Parts}).Text()
	if strings.TrimSpace(text) == "" || response.StopReason != belay.StopEnd || response.Usage.In+response.Usage.CacheRead == 0 || response.Usage.Out == 0 {
		r.Errorf("want a text and its token usage, got %s", shown(response))
	}
}

// takes are the conversations of TestRecordings.
var takes = []take{
	{"text", false, func(r *rehearsal) {
		r.say(belay.RoleUser, belay.Text("Say good morning in German, Greek and Japanese."))
		r.wantText(r.answer())
		r.say(belay.RoleUser, belay.Text("And now <good> & \"evening\"."))
		r.wantText(r.answer())
	}},
	{"tools", false, func(r *rehearsal) {
		r.say(belay.RoleUser, belay.Text("Look to the left and to the right, both at once, and tell me what is there."))
		r.use(func(call *belay.CallPart) belay.Result {
			if bytes.Contains(call.Input, []byte("left")) {
				return belay.Result{Text: "a door"}
			}
			return belay.Failed(belay.ClassFailed, "it is too dark to see")
		})
	}},
	{"thinking", false, func(r *rehearsal) {
		r.say(belay.RoleUser, belay.Text("Think hard: if what is on the left is heavier than what is on the right, say left. Look at both first, one after the other."))
		r.use(func(call *belay.CallPart) belay.Result { return belay.Result{Text: string(call.Input) + ": a stone"} })
		r.say(belay.RoleUser, belay.Text("Why?"))
		r.wantText(r.answer())
	}},
	{"images", false, func(r *rehearsal) {
		r.say(belay.RoleUser, belay.Text("Which colour is this? Then look to the left and tell me that colour too."), belay.Image("image/png", square(color.RGBA{R: 255, A: 255})))
		r.use(func(*belay.CallPart) belay.Result {
			return belay.Result{Text: "this", Media: []belay.Media{{MIME: "image/png", Data: square(color.RGBA{B: 255, A: 255})}}}
		})
	}},
	{"bound", false, func(r *rehearsal) {
		r.talk.MaxTokens, r.talk.Tools = 32, nil
		r.say(belay.RoleUser, belay.Text("Write the numbers from one to one thousand as words, without anything else."))
		if response := r.answer(); response.StopReason != belay.StopMaxTokens {
			r.Errorf("the stop reason is %s", response.StopReason)
		}
	}},
	{"elsewhere", false, func(r *rehearsal) { // another provider began this conversation
		r.talk.Tools = append(r.talk.Tools,
			belay.ToolDeclaration{Name: "files.read/all", Description: strings.Repeat("Reads files. ", 100), InputSchema: json.RawMessage(`{"anyOf":[{"type":"object","properties":{"path":{"type":"string"}}},{"type":"object","properties":{"paths":{"type":"array"}}}]}`)},
			belay.ToolDeclaration{Name: "wait"})
		id := strings.Repeat("functions.look:", 5)
		r.say(belay.RoleUser, belay.Text("What is on the left?"))
		r.say(belay.RoleAssistant,
			belay.Part{Type: belay.PartThinking, Text: "I must look.", Provider: "elsewhere", Opaque: json.RawMessage(`{"signature":"theirs"}`)},
			called(id, "look", `{"at":"left"}`), called(id+"!", "files.read/all", `{"path":"a"}`))
		r.say(belay.RoleUser, result(id, "look", belay.Result{Text: "a door"}), result(id+"!", "files.read/all", belay.Result{}), belay.Text("<system-reminder>Be polite.</system-reminder>"))
		r.wantText(r.answer())
	}},
	{"key", true, func(r *rehearsal) {
		r.say(belay.RoleUser, belay.Text("Hello?"))
		if _, failure := r.ask(); failure == nil || failure.Kind != belay.ModelAuth && failure.Kind != belay.ModelInvalid {
			r.Errorf("a wrong key gives %v", failure)
		}
	}},
}

// square returns an image of one colour.
func square(c color.Color) []byte {
	picture := image.NewRGBA(image.Rect(0, 0, 16, 16))
	for x := range 16 {
		for y := range 16 {
			picture.Set(x, y, c)
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		panic("providertest: " + err.Error())
	}
	return b.Bytes()
}
