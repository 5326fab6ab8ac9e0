package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/serve/api"
)

// chatIn is a request of the Chat Completions API. Fields with the tag `only` cannot be
// changed: the agent's project decides them. They are accepted with their default values.
type chatIn struct {
	Model         string            `json:"model" required:"true" minLength:"1" jsonschema:"the agent that answers: main, or a declared agent"`
	Messages      []chatMessage     `json:"messages" required:"true" minItems:"1" jsonschema:"the conversation. With the header Belay-Session only the messages after the last answer are used"`
	Stream        bool              `json:"stream,omitempty" jsonschema:"send the answer as server-sent events"`
	StreamOptions *streamOptions    `json:"stream_options,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty" jsonschema:"accepted, without effect"`
	User          string            `json:"user,omitempty" jsonschema:"accepted, without effect"`
	Safety        string            `json:"safety_identifier,omitempty" jsonschema:"accepted, without effect"`
	CacheKey      string            `json:"prompt_cache_key,omitempty" jsonschema:"accepted, without effect"`

	Frequency    json.RawMessage `json:"frequency_penalty,omitempty" only:"0" jsonschema:"only the default"`
	Presence     json.RawMessage `json:"presence_penalty,omitempty" only:"0" jsonschema:"only the default"`
	Logprobs     json.RawMessage `json:"logprobs,omitempty" only:"false" jsonschema:"only the default"`
	Modalities   json.RawMessage `json:"modalities,omitempty" only:"[\"text\"]" jsonschema:"only the default"`
	N            json.RawMessage `json:"n,omitempty" only:"1" jsonschema:"only the default"`
	Parallel     json.RawMessage `json:"parallel_tool_calls,omitempty" only:"true" jsonschema:"only the default"`
	Format       json.RawMessage `json:"response_format,omitempty" only:"{\"type\":\"text\"}" jsonschema:"only the default"`
	Tier         json.RawMessage `json:"service_tier,omitempty" only:"\"auto\"|\"default\"" jsonschema:"only the default"`
	Store        json.RawMessage `json:"store,omitempty" only:"true" jsonschema:"every turn is stored"`
	Temperature  json.RawMessage `json:"temperature,omitempty" only:"1|1.0" jsonschema:"only the default"`
	TopP         json.RawMessage `json:"top_p,omitempty" only:"1|1.0" jsonschema:"only the default"`
	Tools        json.RawMessage `json:"tools,omitempty" only:"[]" jsonschema:"only the default: the agent has its own tools"`
	ToolChoice   json.RawMessage `json:"tool_choice,omitempty" only:"\"auto\"" jsonschema:"only the default"`
	Verbosity    json.RawMessage `json:"verbosity,omitempty" only:"\"medium\"" jsonschema:"only the default"`
	LogitBias    json.RawMessage `json:"logit_bias,omitempty" only:"{}" jsonschema:"only the default"`
	Functions    json.RawMessage `json:"functions,omitempty" only:"[]" jsonschema:"only the default"`
	FunctionCall json.RawMessage `json:"function_call,omitempty" only:"\"auto\"" jsonschema:"only the default"`
}

// chatMessage is one message of a request.
type chatMessage struct {
	Role    string          `json:"role" required:"true" enum:"system,developer,user,assistant"`
	Content json.RawMessage `json:"content,omitempty" jsonschema:"a text, or a list of parts of type text"`
	Name    string          `json:"name,omitempty" jsonschema:"accepted, without effect"`
	// These are in the answers of the API, which clients send back.
	Refusal     json.RawMessage `json:"refusal,omitempty" only:"null" jsonschema:"accepted, if it is null"`
	Annotations json.RawMessage `json:"annotations,omitempty" only:"[]" jsonschema:"accepted, if it is empty"`
	Audio       json.RawMessage `json:"audio,omitempty" only:"null" jsonschema:"accepted, if it is null"`
	Calls       json.RawMessage `json:"tool_calls,omitempty" only:"[]" jsonschema:"accepted, if it is empty"`
	Call        json.RawMessage `json:"function_call,omitempty" only:"null" jsonschema:"accepted, if it is null"`
}

type streamOptions struct {
	Usage       bool `json:"include_usage,omitempty" jsonschema:"send the usage before the end of the stream; for Chat Completions"`
	Obfuscation bool `json:"include_obfuscation,omitempty" jsonschema:"accepted, without effect"`
}

// chatOut is the answer of the Chat Completions API, or one part of its stream.
type chatOut struct {
	ID      string       `json:"id"`
	Object  string       `json:"object" jsonschema:"chat.completion or chat.completion.chunk"`
	Created int64        `json:"created"`
	Model   string       `json:"model" jsonschema:"the agent"`
	Choices []chatChoice `json:"choices"`
	Usage   *chatUsage   `json:"usage,omitempty"`
	Belay   *belayOut    `json:"belay,omitempty"`
}

type chatChoice struct {
	Index   int         `json:"index"`
	Message *chatAnswer `json:"message,omitempty"`
	Delta   *chatDelta  `json:"delta,omitempty"`
	// Finish is nil in the parts of a stream before the last.
	Finish *string `json:"finish_reason" jsonschema:"stop, length, content_filter (a hook blocked the turn, or the model refused), or approval_required"`
}

type chatAnswer struct {
	Role    string  `json:"role"`
	Content string  `json:"content"`
	Refusal *string `json:"refusal"`
}

type chatDelta struct {
	Role    string `json:"role,omitempty"`
	Content string `json:"content,omitempty"`
}

type chatUsage struct {
	In      int         `json:"prompt_tokens"`
	Out     int         `json:"completion_tokens"`
	Total   int         `json:"total_tokens"`
	Details tokenDetail `json:"prompt_tokens_details"`
}

type tokenDetail struct {
	Cached int `json:"cached_tokens"`
}

func chatUsageOf(u belay.Usage) *chatUsage {
	in := u.In + u.CacheRead + u.CacheWrite
	return &chatUsage{in, u.Out, in + u.Out, tokenDetail{u.CacheRead}}
}

// text returns the message for the agent.
func (in *chatIn) text(known bool) (string, error) {
	if err := checkOnly(in, ""); err != nil {
		return "", err
	}
	var all []said
	for i := range in.Messages {
		m := &in.Messages[i]
		at := fmt.Sprintf("/messages/%d", i)
		if err := checkOnly(m, at); err != nil {
			return "", err
		}
		text, err := contentText(m.Content, at+"/content")
		if err != nil {
			return "", err
		}
		all = append(all, said{m.Role, text})
	}
	return newText(all, "", fmt.Sprintf("/messages/%d", len(all)-1), known)
}

// chatCompletion runs a turn. It returns nil if it has streamed the answer.
func chatCompletion(ctx context.Context, s *Server, q *request, in *chatIn) (*chatOut, error) {
	session := q.r.Header.Get(headerSession)
	text, err := in.text(session != "")
	if err != nil {
		return nil, err
	}
	ctx, done, err := s.hold(ctx, q.token)
	if err != nil {
		return nil, err
	}
	defer done()
	turn, err := s.openAIStart(ctx, q, in, in.Model, text, func(bool) (string, error) {
		if session == "" {
			return "", nil
		}
		return session, s.openAISession(ctx, q, session)
	})
	if err != nil {
		return nil, err
	}
	out := &chatOut{ID: "chatcmpl-" + strings.TrimPrefix(turn.ID, "turn-"), Object: "chat.completion", Created: time.Now().Unix(), Model: in.Model}
	if in.Stream {
		s.streamChat(ctx, q, in, &turn, out)
		return nil, nil //nolint:nilnil // the stream is the answer
	}
	_ = http.NewResponseController(q.w).SetWriteDeadline(time.Time{}) // the turn may take long
	var p speech
	r, err := s.follow(ctx, turn.followed(p.see))
	if err == nil && r == nil {
		err = interrupted(turn.Session)
	}
	if err == nil {
		err = s.finish(ctx, &p, turn.Session, r)
	}
	if err != nil {
		return nil, err
	}
	if err := chatFailure(r, turn.Session); err != nil {
		return nil, err
	}
	finish, told := chatEnd(r), belayOf(turn.Session, r)
	if finish == "content_filter" && r.Why != "" {
		p.end(r.Why)
	}
	out.Choices = []chatChoice{{Message: &chatAnswer{Role: "assistant", Content: strings.Join(p.steps, "\n\n")}, Finish: &finish}}
	out.Usage, out.Belay = chatUsageOf(r.Usage), &told
	return out, nil
}

// chatEnd returns the finish_reason of a turn.
func chatEnd(r *api.TurnResult) string {
	switch r.Reason {
	case belay.EndParked:
		return "approval_required"
	case belay.EndBlocked, belay.EndRefused:
		return "content_filter"
	case belay.EndMaxSteps, belay.EndBudget:
		return "length"
	default:
		return "stop"
	}
}

// chatFailure is the error of a turn that failed. The Chat Completions API has no other way to
// say so.
func chatFailure(r *api.TurnResult, session string) error {
	if why := failure(r); why != "" && r.Reason != belay.EndBlocked {
		return problem(http.StatusInternalServerError, codes.ServerFailed, "the turn failed in session %s: %s", session, why)
	}
	return nil
}

// streamChat sends the answer as a stream of parts.
func (s *Server) streamChat(ctx context.Context, q *request, in *chatIn, turn *startedTurn, out *chatOut) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o, end := s.openAIStream(ctx, q, cancel)
	defer end()
	out.Object = "chat.completion.chunk"
	part := func(delta chatDelta, finish *string, told *belayOut) {
		one := *out
		one.Choices, one.Belay = []chatChoice{{Delta: &delta, Finish: finish}}, told
		o.send("", one)
	}
	part(chatDelta{Role: "assistant"}, nil, &belayOut{Session: turn.Session})
	begun := 0 // the number of steps whose text was sent
	var p speech
	p.delta = func(text string) {
		if n := len(p.steps); n > 0 && begun == n {
			text = "\n\n" + text
		}
		begun = len(p.steps) + 1
		part(chatDelta{Content: text}, nil, nil)
	}
	r, err := s.follow(ctx, turn.followed(p.see))
	if err == nil && r == nil {
		err = interrupted(turn.Session)
	}
	if err == nil {
		err = s.finish(ctx, &p, turn.Session, r)
	}
	if err == nil {
		err = chatFailure(r, turn.Session)
	}
	if err != nil {
		o.send("", openAIError{s.problemFor(ctx, q.token, err).openAI()})
		return
	}
	finish, told := chatEnd(r), belayOf(turn.Session, r)
	if finish == "content_filter" && r.Why != "" {
		p.end(r.Why)
	}
	part(chatDelta{}, &finish, &told)
	if in.StreamOptions != nil && in.StreamOptions.Usage {
		last := *out
		last.Choices, last.Usage = []chatChoice{}, chatUsageOf(r.Usage)
		o.send("", last)
	}
	o.write("data: [DONE]\n\n")
}
