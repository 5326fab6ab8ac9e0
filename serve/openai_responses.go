package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/serve/api"
)

// responseIn is a request of the Responses API. Fields with the tag `only` cannot be changed:
// the agent's project decides them. They are accepted with their default values.
type responseIn struct {
	Model         string            `json:"model" required:"true" minLength:"1" jsonschema:"the agent that answers: main, or a declared agent"`
	Input         json.RawMessage   `json:"input" required:"true" jsonschema:"a text, or a list of messages with text"`
	Previous      string            `json:"previous_response_id,omitempty" jsonschema:"continue the conversation after this response. If it is not the last one of its session, a fork of the session continues"`
	Conversation  json.RawMessage   `json:"conversation,omitempty" jsonschema:"the id of a session to continue, or an object with its id"`
	Instructions  string            `json:"instructions,omitempty" jsonschema:"becomes a part of the message: it does not replace the instructions of the agent"`
	Stream        bool              `json:"stream,omitempty" jsonschema:"send the answer as server-sent events"`
	StreamOptions *streamOptions    `json:"stream_options,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty" jsonschema:"repeated in the answer, and not stored"`
	User          string            `json:"user,omitempty" jsonschema:"accepted, without effect"`
	Safety        string            `json:"safety_identifier,omitempty" jsonschema:"accepted, without effect"`
	CacheKey      string            `json:"prompt_cache_key,omitempty" jsonschema:"accepted, without effect"`

	Background  json.RawMessage `json:"background,omitempty" only:"false" jsonschema:"only the default"`
	Include     json.RawMessage `json:"include,omitempty" only:"[]" jsonschema:"only the default"`
	Parallel    json.RawMessage `json:"parallel_tool_calls,omitempty" only:"true" jsonschema:"only the default"`
	Tier        json.RawMessage `json:"service_tier,omitempty" only:"\"auto\"|\"default\"" jsonschema:"only the default"`
	Store       json.RawMessage `json:"store,omitempty" only:"true" jsonschema:"every turn is stored"`
	Temperature json.RawMessage `json:"temperature,omitempty" only:"1|1.0" jsonschema:"only the default"`
	Text        json.RawMessage `json:"text,omitempty" only:"{\"format\":{\"type\":\"text\"}}|{}" jsonschema:"only the default"`
	ToolChoice  json.RawMessage `json:"tool_choice,omitempty" only:"\"auto\"" jsonschema:"only the default"`
	Tools       json.RawMessage `json:"tools,omitempty" only:"[]" jsonschema:"only the default: the agent has its own tools"`
	TopLogprobs json.RawMessage `json:"top_logprobs,omitempty" only:"0" jsonschema:"only the default"`
	TopP        json.RawMessage `json:"top_p,omitempty" only:"1|1.0" jsonschema:"only the default"`
	Truncation  json.RawMessage `json:"truncation,omitempty" only:"\"disabled\"" jsonschema:"only the default"`
}

// inputItem is one item of an input that is a list. Items of earlier answers have an id and a
// status, too.
type inputItem struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	ID      string          `json:"id"`
	Status  string          `json:"status"`
	Phase   json.RawMessage `json:"phase"`
}

// responseOut is a response of the Responses API.
type responseOut struct {
	ID           string            `json:"id"`
	Object       string            `json:"object" jsonschema:"always response"`
	Created      int64             `json:"created_at"`
	Status       string            `json:"status" jsonschema:"queued, in_progress, completed, incomplete or failed"`
	Background   bool              `json:"background"`
	Error        *responseError    `json:"error"`
	Incomplete   *incomplete       `json:"incomplete_details"`
	Instructions *string           `json:"instructions"`
	Model        string            `json:"model" jsonschema:"the agent"`
	Output       []outputItem      `json:"output"`
	Parallel     bool              `json:"parallel_tool_calls"`
	Previous     *string           `json:"previous_response_id"`
	Conversation responseSession   `json:"conversation"`
	Store        bool              `json:"store"`
	Temperature  float64           `json:"temperature"`
	Text         responseText      `json:"text"`
	ToolChoice   string            `json:"tool_choice"`
	Tools        []string          `json:"tools" jsonschema:"always empty: the agent runs its tools itself"`
	TopP         float64           `json:"top_p"`
	Truncation   string            `json:"truncation"`
	Usage        *responseUsage    `json:"usage"`
	Metadata     map[string]string `json:"metadata"`
	Belay        belayOut          `json:"belay"`
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type incomplete struct {
	Reason string `json:"reason" jsonschema:"approval_required, max_output_tokens (a limit of the turn was reached) or content_filter (the model refused)"`
}

type responseSession struct {
	ID string `json:"id" jsonschema:"the session"`
}

type responseText struct {
	Format struct {
		Type string `json:"type"`
	} `json:"format"`
}

type outputItem struct {
	ID      string       `json:"id"`
	Type    string       `json:"type" jsonschema:"always message"`
	Status  string       `json:"status"`
	Role    string       `json:"role"`
	Content []outputText `json:"content"`
}

type outputText struct {
	Type        string   `json:"type" jsonschema:"always output_text"`
	Text        string   `json:"text"`
	Annotations []string `json:"annotations"`
	Logprobs    []string `json:"logprobs"`
}

type responseUsage struct {
	In         int         `json:"input_tokens"`
	InDetails  tokenDetail `json:"input_tokens_details"`
	Out        int         `json:"output_tokens"`
	OutDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int `json:"total_tokens"`
}

func responseUsageOf(u belay.Usage) *responseUsage {
	in := u.In + u.CacheRead + u.CacheWrite
	return &responseUsage{In: in, InDetails: tokenDetail{u.CacheRead}, Out: u.Out, Total: in + u.Out}
}

// A responseID says where the turn of a response is: it was queued in the session after a
// message. So every server knows every response, and needs no list of them.
type responseID struct {
	after   int64
	queued  string // without "turn-"
	session string
}

func (r responseID) String() string {
	return fmt.Sprintf("resp_%d_%s_%s", r.after, r.queued, r.session)
}

func parseResponseID(field, text string) (responseID, error) {
	parts := strings.SplitN(text, "_", 4)
	if len(parts) == 4 && parts[0] == "resp" {
		if after, err := strconv.ParseInt(parts[1], 10, 64); err == nil && after >= 0 {
			return responseID{after, parts[2], parts[3]}, nil
		}
	}
	return responseID{}, invalid(field, "%.80q is not the id of a response of this server", text)
}

// newResponse returns a response without its result.
func newResponse(id responseID, agent string, at time.Time) *responseOut {
	out := &responseOut{
		ID: id.String(), Object: "response", Created: at.Unix(), Status: "in_progress", Model: agent, Output: []outputItem{}, Parallel: true, Conversation: responseSession{id.session},
		Store: true, Temperature: 1, ToolChoice: "auto", Tools: []string{}, TopP: 1, Truncation: "disabled", Metadata: map[string]string{}, Belay: belayOut{Session: id.session},
	}
	out.Text.Format.Type = "text"
	return out
}

// item returns the output of one step.
func (o *responseOut) item(n int, text, status string) outputItem {
	out := outputItem{ID: fmt.Sprintf("msg_%d_%s", n, strings.TrimPrefix(o.ID, "resp_")), Type: "message", Status: status, Role: "assistant", Content: []outputText{}}
	if status == "completed" {
		out.Content = []outputText{newOutputText(text)}
	}
	return out
}

func newOutputText(text string) outputText {
	return outputText{Type: "output_text", Text: text, Annotations: []string{}, Logprobs: []string{}}
}

// end adds the result of the turn.
func (o *responseOut) end(r *api.TurnResult, texts []string) {
	o.Output = []outputItem{}
	for i, text := range texts {
		o.Output = append(o.Output, o.item(i, text, "completed"))
	}
	o.Belay, o.Usage, o.Status = belayOf(o.Belay.Session, r), responseUsageOf(r.Usage), "completed"
	switch why := failure(r); {
	case r.Reason == belay.EndParked:
		o.Status, o.Incomplete = "incomplete", &incomplete{"approval_required"}
	case r.Reason == belay.EndMaxSteps || r.Reason == belay.EndBudget:
		o.Status, o.Incomplete = "incomplete", &incomplete{"max_output_tokens"}
	case r.Reason == belay.EndRefused:
		o.Status, o.Incomplete = "incomplete", &incomplete{"content_filter"}
	case why != "":
		o.Status, o.Error = "failed", &responseError{cmp.Or(map[belay.EndReason]string{belay.EndBlocked: "blocked", belay.EndAborted: "aborted"}[r.Reason], "server_error"), why}
	}
}

// text returns the message for the agent.
func (in *responseIn) text(known bool) (string, error) {
	if err := checkOnly(in, ""); err != nil {
		return "", err
	}
	var text string
	if json.Unmarshal(in.Input, &text) == nil {
		return newText([]said{{"user", text}}, in.Instructions, "/input", known)
	}
	var items []json.RawMessage
	if json.Unmarshal(in.Input, &items) != nil {
		return "", invalid("/input", "the input must be a text or a list of messages")
	}
	var all []said
	for i, raw := range items {
		at := fmt.Sprintf("/input/%d", i)
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		item := inputItem{Type: "message"}
		var kind struct {
			Type string `json:"type"`
		}
		switch err := dec.Decode(&item); {
		case json.Unmarshal(raw, &kind) == nil && kind.Type != "" && kind.Type != "message":
			return "", invalid(at+"/type", "items of type %q are not supported: send messages", kind.Type)
		case err != nil:
			return "", invalid(at, "the item is not a message: %v", err)
		case !slices.Contains([]string{"system", "developer", "user", "assistant"}, item.Role):
			return "", invalid(at+"/role", "there is no role %q: use user, assistant, system or developer", item.Role)
		}
		text, err := contentText(item.Content, at+"/content")
		if err != nil {
			return "", err
		}
		all = append(all, said{item.Role, text})
	}
	return newText(all, in.Instructions, "/input", known)
}

// session returns the session that a request continues, or "".
func (in *responseIn) session(header string) (string, error) {
	id := header
	if len(in.Conversation) > 0 && string(in.Conversation) != "null" {
		var named struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(in.Conversation, &named.ID) != nil && json.Unmarshal(in.Conversation, &named) != nil || named.ID == "" {
			return "", invalid("/conversation", "the conversation must be the id of a session, or an object with its id")
		}
		if id != "" && id != named.ID {
			return "", invalid("/conversation", "the header %s names another session", headerSession)
		}
		id = named.ID
	}
	if id != "" && in.Previous != "" {
		return "", invalid("/previous_response_id", "previous_response_id and the session exclude each other: send one of them")
	}
	return id, nil
}

// createResponse runs a turn. It returns nil if it has streamed the answer.
func createResponse(ctx context.Context, s *Server, q *request, in *responseIn) (*responseOut, error) {
	session, err := in.session(q.r.Header.Get(headerSession))
	if err != nil {
		return nil, err
	}
	text, err := in.text(session != "" || in.Previous != "")
	if err != nil {
		return nil, err
	}
	ctx, done, err := s.hold(ctx, q.token)
	if err != nil {
		return nil, err
	}
	defer done()
	turn, err := s.openAIStart(ctx, q, in, in.Model, text, func(branch bool) (string, error) {
		if in.Previous != "" {
			if session, err = s.afterResponse(ctx, q, in.Previous, branch); err != nil {
				return "", err
			}
		}
		if session == "" {
			return "", nil
		}
		return session, s.openAISession(ctx, q, session)
	})
	if err != nil {
		return nil, err
	}
	after, err := numberOf(turn.After)
	if err != nil {
		return nil, err
	}
	out := newResponse(responseID{after, strings.TrimPrefix(turn.ID, "turn-"), turn.Session}, in.Model, time.Now())
	if in.Metadata != nil {
		out.Metadata = in.Metadata
	}
	if in.Previous != "" {
		out.Previous = &in.Previous
	}
	if in.Stream {
		s.streamResponse(ctx, q, &turn, out)
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
	out.end(r, p.steps)
	return out, nil
}

// foundTurn is the turn of a response, in the store.
type foundTurn struct {
	info   belay.SessionInfo
	turn   string // empty: the turn has not begun, or ended without a message
	first  time.Time
	last   int64 // the number of its last message
	later  bool  // a later turn has begun
	texts  []string
	result api.TurnResult
	// answered says that the last message of the turn is an answer of the model.
	answered bool
}

// answers reports whether a message ends a turn that ended well: it is of the model, and has no
// calls whose results are missing.
func answers(m *belay.Message) bool { return m.Role == belay.RoleAssistant && len(m.Calls()) == 0 }

// findTurn reads the turn of a response.
func (s *Server) findTurn(ctx context.Context, q *request, field, text string) (responseID, foundTurn, error) {
	var f foundTurn
	id, err := parseResponseID(field, text)
	if err != nil {
		return id, f, err
	}
	if f.info, err = s.session(ctx, q, id.session); err != nil {
		if p, ok := errors.AsType[*Problem](err); ok && p.Status == http.StatusNotFound {
			err = notFound("response", text)
		}
		return id, f, err
	}
	for m, err := range s.store.Read(ctx, f.info.ID, id.after) {
		if err != nil {
			return id, f, err
		}
		switch {
		case m.Queued == "turn-"+id.queued:
			f.turn, f.first = m.Turn, m.Time
		case f.turn == "":
			continue
		case m.Turn != f.turn:
			f.later = true
			continue
		}
		f.answered = answers(m)
		if f.last = m.Seq; m.Role == belay.RoleAssistant {
			if said := m.Text(); said != "" {
				f.texts = append(f.texts, said)
			}
			if m.Usage != nil {
				f.result.Usage = addUsage(f.result.Usage, *m.Usage)
			}
		}
	}
	f.result.Turn = f.turn
	return id, f, nil
}

// afterResponse returns the session in which the conversation continues after a response. If
// the session has gone on since, or with branch, a fork of it continues.
func (s *Server) afterResponse(ctx context.Context, q *request, text string, branch bool) (string, error) {
	const field = "/previous_response_id"
	_, f, err := s.findTurn(ctx, q, field, text)
	if err != nil {
		return "", err
	}
	if f.turn == "" {
		return "", invalid(field, "the response %s has no message to continue after", text)
	}
	open := f.info.State.Turn
	if open != nil && open.ID == f.turn && !open.Parked {
		return "", problem(http.StatusConflict, codes.SessionHeld, "the response %s is still running: continue when it has ended", text)
	}
	if !f.later && !branch {
		q.follows = f.info.Last // of two requests that continue this response, one gets a fork
		return f.info.ID, nil
	}
	q.follows = 0
	forked, err := forkSession(ctx, s, q, &api.ForkSession{Session: f.info.ID, At: f.last})
	return forked.ID, err
}

type readResponseIn struct {
	Response string `json:"response" in:"path" required:"true" jsonschema:"the id of the response"`
}

func readResponse(ctx context.Context, s *Server, q *request, in *readResponseIn) (*responseOut, error) {
	id, f, err := s.findTurn(ctx, q, "/response", in.Response)
	if err != nil {
		return nil, err
	}
	state := &f.info.State
	out := newResponse(id, cmp.Or(state.Agent, "main"), f.first)
	if f.first.IsZero() {
		out.Created = f.info.Changed.Unix()
	}
	p := speech{steps: f.texts}
	waits := false
	if f.turn == "" {
		if waits, err = s.isQueued(ctx, f.info.ID, "turn-"+id.queued); err != nil {
			return nil, err
		}
	}
	switch {
	case waits:
		out.Status = "queued"
		return out, nil
	case f.turn == "": // a hook blocked its message
		f.result.Reason, f.result.Why = belay.EndBlocked, neverBegun
	case state.Turn != nil && state.Turn.ID == f.turn && state.Turn.Parked:
		if what, _, err := s.waitsFor(ctx, f.info.ID); err != nil || what == "" { // decided: a worker will continue it
			return out, err
		}
		f.result.Reason = belay.EndParked
	case state.Turn != nil && state.Turn.ID == f.turn:
		return out, nil
	case f.later && !f.answered:
		f.result.Why = unknownEnd
	case !f.later && state.Turn == nil:
		if f.result.Reason = state.Last; state.Ending != nil {
			f.result.By, f.result.Why = state.Ending.By, q.token.why(state.Last, state.Ending.Why)
		}
	}
	if err := s.finish(ctx, &p, f.info.ID, &f.result); err != nil {
		return nil, err
	}
	out.end(&f.result, p.steps)
	return out, nil
}

// responseEvent is one event of a stream of the Responses API. The kind determines which
// fields are set.
type responseEvent struct {
	Type     string         `json:"type"`
	Sequence int            `json:"sequence_number"`
	Response *responseOut   `json:"response,omitempty"`
	Item     *outputItem    `json:"item,omitempty"`
	ItemID   string         `json:"item_id,omitempty"`
	Output   *int           `json:"output_index,omitempty"`
	Content  *int           `json:"content_index,omitempty"`
	Part     *outputText    `json:"part,omitempty"`
	Delta    *string        `json:"delta,omitempty"`
	Text     *string        `json:"text,omitempty"`
	Logprobs *[]string      `json:"logprobs,omitempty"`
	Error    *openAIProblem `json:"error,omitempty"`
	Code     string         `json:"code,omitempty"`
	Message  string         `json:"message,omitempty"`
}

// responseStream sends the events of a response.
type responseStream struct {
	o     *openAIStream
	out   *responseOut
	next  int // the number of the next event
	items int // the number of items that have ended
	begun bool
}

func (r *responseStream) send(e *responseEvent) {
	e.Sequence = r.next
	r.next++
	r.o.send(e.Type, e)
}

// whole sends an event with the whole response.
func (r *responseStream) whole(kind string) {
	r.send(&responseEvent{Type: kind, Response: r.out})
}

// at returns an event about the text of the current item.
func (r *responseStream) at(kind string) *responseEvent {
	n, zero := r.items, 0
	return &responseEvent{Type: kind, ItemID: r.out.item(n, "", "in_progress").ID, Output: &n, Content: &zero}
}

func (r *responseStream) delta(text string) {
	if !r.begun {
		r.begun = true
		item, empty, n := r.out.item(r.items, "", "in_progress"), newOutputText(""), r.items
		r.send(&responseEvent{Type: "response.output_item.added", Output: &n, Item: &item})
		e := r.at("response.content_part.added")
		e.Part = &empty
		r.send(e)
	}
	e := r.at("response.output_text.delta")
	e.Delta, e.Logprobs = &text, &[]string{}
	r.send(e)
}

func (r *responseStream) done(text string) {
	e := r.at("response.output_text.done")
	e.Text, e.Logprobs = &text, &[]string{}
	r.send(e)
	part, item, n := newOutputText(text), r.out.item(r.items, text, "completed"), r.items
	e = r.at("response.content_part.done")
	e.Part = &part
	r.send(e)
	r.send(&responseEvent{Type: "response.output_item.done", Output: &n, Item: &item})
	r.items, r.begun = r.items+1, false
}

// streamResponse sends the answer as a stream of events.
func (s *Server) streamResponse(ctx context.Context, q *request, turn *startedTurn, out *responseOut) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o, end := s.openAIStream(ctx, q, cancel)
	defer end()
	stream := &responseStream{o: o, out: out}
	stream.whole("response.created")
	stream.whole("response.in_progress")
	p := speech{delta: stream.delta, done: stream.done}
	r, err := s.follow(ctx, turn.followed(p.see))
	if err == nil && r == nil {
		err = interrupted(turn.Session)
	}
	if err == nil {
		err = s.finish(ctx, &p, turn.Session, r)
	}
	if err != nil {
		p := s.problemFor(ctx, q.token, err).openAI()
		stream.send(&responseEvent{Type: "error", Error: &p, Code: string(p.Code), Message: p.Message})
		return
	}
	out.end(r, p.steps)
	stream.whole("response." + out.Status)
}
