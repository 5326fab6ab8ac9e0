package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/serve/api"
)

// The endpoints that clients of OpenAI can use. docs/openai.md explains what they do.
const (
	pathChat      = "/v1/chat/completions"
	pathResponses = "/v1/responses"
)

// tagOpenAI is the tag of their operations.
const tagOpenAI = "openai"

// headerSession names the session of a request and of its response.
const headerSession = "Belay-Session"

// openAIErrors makes the errors of the OpenAI endpoints look like those of OpenAI.
func openAIErrors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.Path; path == pathChat || path == pathResponses || strings.HasPrefix(path, pathResponses+"/") {
			w = openAIWriter{w}
		}
		next.ServeHTTP(w, r)
	})
}

// openAIWriter marks the response of an OpenAI endpoint: see [Problem.send].
type openAIWriter struct{ http.ResponseWriter }

// Unwrap lets http.ResponseController find the connection.
func (w openAIWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// openAIError is the body of an error, in the form of OpenAI.
type openAIError struct {
	Error openAIProblem `json:"error"`
}

type openAIProblem struct {
	Message string     `json:"message"`
	Type    string     `json:"type"`
	Param   *string    `json:"param"`
	Code    codes.Code `json:"code"`
}

// pointerIndex matches the indexes in a JSON pointer.
var pointerIndex = lazyregexp.New(`/(\d+)`)

// openAI returns the problem in the form of OpenAI.
func (p *Problem) openAI() openAIProblem {
	out := openAIProblem{Message: p.Detail, Type: "invalid_request_error", Code: p.Code}
	switch {
	case p.Status >= http.StatusInternalServerError:
		out.Type = "server_error"
	case p.Status == http.StatusUnauthorized:
		out.Type = "authentication_error"
	case p.Status == http.StatusForbidden:
		out.Type = "permission_error"
	case p.Status == http.StatusTooManyRequests:
		out.Type = "rate_limit_error"
	}
	if p.Field != "" { // /messages/0/role becomes messages[0].role
		param := strings.ReplaceAll(strings.TrimPrefix(pointerIndex.ReplaceAllString(p.Field, "[$1]"), "/"), "/", ".")
		out.Param = &param
	}
	return out
}

// sendOpenAI writes the problem as an error of OpenAI. The SDKs of OpenAI repeat requests that
// fail with certain statuses. They must do so only if the message was not stored.
func (p *Problem) sendOpenAI(w http.ResponseWriter) {
	status := p.Status
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	if p.retry == 0 {
		w.Header().Set("X-Should-Retry", "false")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(openAIError{p.openAI()}) //nolint:errchkjson // the client has left; tests encode every error
}

// checkOnly rejects fields that have a tag `only` and another value than the tag lists. The
// tag has JSON values, separated by "|".
func checkOnly(in any, at string) error {
	v := reflect.ValueOf(in).Elem()
	for f, value := range v.Fields() {
		only, ok := f.Tag.Lookup("only")
		raw, isJSON := reflect.TypeAssert[json.RawMessage](value)
		if !ok || !isJSON || len(raw) == 0 {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		var given bytes.Buffer
		if err := json.Compact(&given, raw); err != nil {
			return invalid(at+"/"+name, "%s is not JSON", name)
		}
		if accepted := append(strings.Split(only, "|"), "null"); !slices.Contains(accepted, given.String()) {
			return invalid(at+"/"+name, "%s: this server supports only %s here: leave the field out", name, strings.Join(accepted[:len(accepted)-1], " and "))
		}
	}
	return nil
}

// said is one message of a request.
type said struct{ role, text string }

// newText returns the text that a request sends to the agent. If the session already has the
// conversation, only what follows the last answer is new. Otherwise the session is new, and
// its first message quotes the conversation. Instructions of the client never replace those of
// the agent: they are part of the user's message.
func newText(all []said, instructions, field string, known bool) (string, error) {
	if len(all) == 0 || all[len(all)-1].role != "user" {
		return "", invalid(field, "the last message must have the role user")
	}
	var wishes, earlier []string
	if instructions != "" {
		wishes = append(wishes, instructions)
	}
	last := 0 // the number of messages before the new ones
	for i, m := range all {
		if m.role == "assistant" {
			last = i + 1
		}
	}
	var fresh []string
	for i, m := range all {
		switch {
		case m.role == "system" || m.role == "developer":
			if !known || i >= last {
				wishes = append(wishes, m.text)
			}
		case i >= last:
			fresh = append(fresh, m.text)
		case !known:
			earlier = append(earlier, m.role+": "+m.text)
		}
	}
	text := strings.Join(fresh, "\n\n")
	if len(earlier) > 0 {
		text = "The conversation so far:\n\n" + strings.Join(earlier, "\n\n") + "\n\nThe new message:\n\n" + text
	}
	if len(wishes) > 0 {
		text = "Instructions of the user's program:\n\n" + strings.Join(wishes, "\n\n") + "\n\n" + text
	}
	if strings.TrimSpace(text) == "" {
		return "", invalid(field, "the last message is empty")
	}
	return text, nil
}

// contentText returns the text of a message: a string, or a list of text parts.
func contentText(raw json.RawMessage, field string) (string, error) {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", invalid(field, "the content must be a text or a list of parts")
	}
	var texts []string
	for i, p := range parts {
		if !slices.Contains([]string{"text", "input_text", "output_text"}, p.Type) {
			return "", invalid(fmt.Sprintf("%s/%d/type", field, i), "parts of type %q are not supported: send text", p.Type)
		}
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n"), nil
}

// openAISession returns the session that a request continues. It refuses a session whose turn
// waits for approval: a new message would wait too, and the client would wait in vain.
func (s *Server) openAISession(ctx context.Context, q *request, id string) error {
	info, err := s.session(ctx, q, id)
	if err != nil {
		return err
	}
	if open := info.State.Turn; open != nil && open.Parked {
		what, _, err := s.waitsFor(ctx, id)
		if err != nil {
			return err
		}
		return problem(http.StatusConflict, codes.TurnParked, "the session cannot take a message. %s", what)
	}
	return nil
}

// waitsFor says what the parked turn of a session waits for, and returns the ids of the
// approvals. The text is empty if everything is decided, and the turn will continue.
func (s *Server) waitsFor(ctx context.Context, session string) (text string, ids []string, err error) {
	var lines []string
	for question, err := range belay.Questions(ctx, s.store, belay.ApprovalFilter{Session: session}) {
		if err != nil {
			return "", nil, err
		}
		one := inspect.ApprovalOf(question)
		if one.ID != "" {
			ids = append(ids, one.ID)
		}
		switch {
		case one.Question != "":
			lines = append(lines, fmt.Sprintf("The agent asks (approval %s): %s", one.ID, one.Question))
		case one.ID == "":
			lines = append(lines, fmt.Sprintf("The call of %s waits for: %s", one.Tool, one.Wait))
		default:
			lines = append(lines, fmt.Sprintf("The call of %s needs approval (approval %s): %s", one.Tool, one.ID, one.Reason))
		}
	}
	if len(lines) == 0 {
		return "", nil, nil
	}
	return "The turn is waiting.\n\n" + strings.Join(lines, "\n") + "\n\nDecide with `belay approvals`, or with POST /v1/approvals/ID/decision. Then the turn continues by itself.", ids, nil
}

// openAIStart stores the message of a request in its session, or in a new one. begin returns the
// session, or "". It is not called for a request that was repeated. It is called again, with
// branch, if another turn already follows the message request.follows.
func (s *Server) openAIStart(ctx context.Context, q *request, in any, agent, text string, begin func(branch bool) (session string, err error)) (startedTurn, error) {
	first, err := s.repeated(ctx, q, in)
	if err != nil {
		return startedTurn{}, err
	}
	if first == nil {
		session, err := begin(false)
		if err != nil {
			return startedTurn{}, err
		}
		started, err := s.startIn(ctx, q, session, agent, "/model", text)
		if q.follows > 0 && errors.Is(err, belay.ErrConflict) {
			if session, err = begin(true); err == nil {
				started, err = s.startIn(ctx, q, session, agent, "/model", text)
			}
		}
		if err != nil {
			return startedTurn{}, err
		}
		first = &started
	}
	q.w.Header().Set(headerSession, first.Session)
	return *first, nil
}

// startIn starts a turn in a session, or in a new one.
func (s *Server) startIn(ctx context.Context, q *request, session, agent, field, text string) (startedTurn, error) {
	if err := s.project.CheckAgent(agent); err != nil { // before a session is made for nothing
		if q.token.isTenant() { // the error may have the path of a file
			return startedTurn{}, invalid(field, "there is no agent %q: GET /v1/models lists the agents", agent)
		}
		return startedTurn{}, invalid(field, "%v: GET /v1/models lists the agents", err)
	}
	if s.stopping() {
		return s.start(ctx, q, &api.StartTurn{}) // refuses it
	}
	made := session == ""
	if made {
		created, err := createSession(ctx, s, q, &api.CreateSession{})
		if err != nil {
			return startedTurn{}, err
		}
		session = created.ID
	}
	started, err := s.start(ctx, q, &api.StartTurn{Session: session, Text: text, Agent: agent, Wait: api.WaitNone})
	if made && err == nil && started.Session != session { // another request was faster: nobody would find the empty session
		if gone := s.store.Delete(context.WithoutCancel(ctx), session); gone != nil {
			s.log.WarnContext(ctx, "cannot delete the session of a repeated request", "session", session, "error", gone)
		}
	}
	return started, err
}

// belayOut tells what OpenAI's forms have no field for.
type belayOut struct {
	Session   string          `json:"session" jsonschema:"the session: send it as the header Belay-Session to continue it"`
	Turn      string          `json:"turn,omitempty"`
	Reason    belay.EndReason `json:"reason,omitempty" jsonschema:"why the turn ended"`
	Why       string          `json:"why,omitempty" jsonschema:"what went wrong"`
	Approvals []string        `json:"approvals,omitempty" jsonschema:"the approvals that the turn waits for"`
}

func belayOf(session string, r *api.TurnResult) belayOut {
	return belayOut{session, r.Turn, r.Reason, r.Why, r.Approvals}
}

// failure returns why a turn did not end well, or "".
func failure(r *api.TurnResult) string {
	switch r.Reason {
	case belay.EndAborted, belay.EndBlocked, belay.EndStuck, belay.EndError:
		return cmp.Or(r.Why, "the turn ended: "+string(r.Reason))
	case "": // a later turn has begun, and the store has only the end of the last one
		return r.Why
	default:
		return ""
	}
}

// unknownEnd says why the end of a turn is not known.
const unknownEnd = "the turn did not end with an answer. A later turn has begun, so the reason is no longer stored"

// interrupted is the problem of a client whose turn goes on after the server has stopped.
func interrupted(session string) *Problem {
	return problem(http.StatusInternalServerError, codes.ServerDraining, "the server stops before the turn has ended: the turn continues later, in session %s", session)
}

// A speech collects the text of a turn, step by step, and passes on what is new.
type speech struct {
	steps []string // the texts of the steps that have ended
	live  string   // the part of the current step that was passed on
	lost  bool     // deltas of the current step are missing or no longer valid
	// delta gets the text of a step as it comes; done gets the whole text of the step. Both may
	// be nil.
	delta func(text string)
	done  func(text string)
}

// see takes an event of the turn. Nil means that events were lost.
func (p *speech) see(e *belay.Event) {
	switch {
	case e == nil || e.Kind == belay.EventError && e.Retry:
		p.lost = true // wait for the stored response
	case e.Depth > 0:
	case e.Kind == belay.EventTextDelta && !p.lost && e.Text != "":
		p.live += e.Text
		p.pass(e.Text)
	case e.Kind == belay.EventModelResponse && e.Message != nil:
		p.end(e.Message.Text())
	}
}

func (p *speech) pass(text string) {
	if p.delta != nil {
		p.delta(text)
	}
}

// end takes the whole text of a step, and passes on what is missing of it.
func (p *speech) end(text string) {
	live := p.live
	p.live, p.lost = "", false
	if text == "" && live == "" {
		return
	}
	rest, ok := strings.CutPrefix(text, live)
	if !ok { // a failed response was repeated, and the second one differs
		rest = "\n\n" + text
	}
	if rest != "" {
		p.pass(rest)
	}
	if p.done != nil {
		p.done(text)
	}
	p.steps = append(p.steps, text)
}

// finish adds the text of a turn that the model did not write, such as the answer of a
// directive, and what a parked turn waits for.
func (s *Server) finish(ctx context.Context, p *speech, session string, r *api.TurnResult) error {
	if len(p.steps) == 0 && r.Text != "" {
		p.end(r.Text)
	}
	if r.Reason == belay.EndParked {
		what, ids, err := s.waitsFor(ctx, session)
		if err != nil {
			return err
		}
		r.Approvals = ids
		if r.Queued {
			what = strings.TrimSpace("An earlier turn of the session is parked. The new message is in the queue, and its turn begins when the earlier one has ended.\n\n" + what)
		}
		p.end(what)
	}
	return nil
}

// openAIStream sends the events of one turn. Writing never fails: when the client has left, the
// stream does nothing any more.
type openAIStream struct {
	lock chan struct{} // holds one value while nobody writes
	out  *patientWriter
	gone bool
}

// openAIStream starts a stream. It sends comments while the turn is silent. The client must
// call end.
func (s *Server) openAIStream(ctx context.Context, q *request, leave context.CancelFunc) (stream *openAIStream, end func()) {
	out := &patientWriter{w: q.w, control: http.NewResponseController(q.w), each: s.timeouts.event}
	o := &openAIStream{lock: make(chan struct{}, 1), out: out}
	o.lock <- struct{}{}
	q.w.Header().Set("Content-Type", "text/event-stream")
	q.w.Header().Set("X-Accel-Buffering", "no") // nginx must not hold events back
	q.w.WriteHeader(http.StatusOK)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { // ends with end
		defer close(ended)
		ping := time.NewTicker(s.opts.Ping)
		defer ping.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ping.C:
			}
			if !o.write(": ping\n\n") { // the client has left
				leave()
				return
			}
		}
	}()
	return o, func() { cancel(); <-ended }
}

// write writes text unless the client has left.
func (o *openAIStream) write(text string) bool {
	<-o.lock
	defer func() { o.lock <- struct{}{} }()
	if !o.gone {
		_, err := o.out.Write([]byte(text))
		o.gone = err != nil || o.out.control.Flush() != nil
	}
	return !o.gone
}

// send sends one event. Without a name it has only data.
func (o *openAIStream) send(event string, data any) {
	encoded, err := json.Marshal(data)
	if err != nil { // a test finds it
		encoded = []byte(`{"error":{"message":"the event cannot be encoded","type":"server_error","param":null,"code":"server.failed"}}`)
	}
	if event != "" {
		event = "event: " + event + "\n"
	}
	o.write(event + "data: " + string(encoded) + "\n\n")
}
