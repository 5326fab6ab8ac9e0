package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/internal/inspect"
	"github.com/belay-run/belay/serve/api"
)

// progressPause is the least time between two notifications of progress.
const progressPause = 100 * time.Millisecond

// multiRound is the first version of MCP in which a tool asks the user with its result. In
// older versions the server sends a request to the client.
const multiRound = "2026-07-28"

// mcpInput is the input of the tool of an agent.
type mcpInput struct {
	Text    string `json:"text" jsonschema:"the message to the agent: what it should do, with everything that it must know"`
	Session string `json:"session,omitempty" jsonschema:"the session to continue, from an earlier result; without it a new conversation begins"`
}

// mcpOutput is the structured result of the tool of an agent.
type mcpOutput struct {
	Session   string          `json:"session" jsonschema:"pass it to continue the conversation"`
	Turn      string          `json:"turn,omitempty"`
	Reason    belay.EndReason `json:"reason" jsonschema:"why the turn ended: end_turn, parked (it waits for an approval), blocked, aborted, error and others"`
	Text      string          `json:"text" jsonschema:"the answer of the agent"`
	Why       string          `json:"why,omitempty" jsonschema:"what went wrong"`
	Approvals []string        `json:"approvals,omitempty" jsonschema:"the approvals that the turn waits for"`
}

// mcpServer makes the MCP server for a token: one tool for each agent.
func (s *Server) mcpServer(ctx context.Context, token *Token) (*mcp.Server, error) {
	agents, err := s.project.Agents(ctx)
	if err != nil {
		return nil, err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "belay", Title: "Belay", Version: "1"}, &mcp.ServerOptions{
		Instructions: "Each tool is an agent with its own tools. A call runs one turn. Pass the session of an earlier result to continue a conversation.",
		Logger:       s.log, Capabilities: &mcp.ServerCapabilities{},
	})
	add := func(name, description string) {
		mcp.AddTool(server, &mcp.Tool{Name: name, Description: description}, func(ctx context.Context, req *mcp.CallToolRequest, in mcpInput) (*mcp.CallToolResult, mcpOutput, error) {
			c := &mcpCall{s: s, q: &request{token: token}, req: req, agent: name}
			result, err := c.run(ctx, &in)
			if err != nil {
				return nil, mcpOutput{}, errors.New(s.problemFor(ctx, token, err).Detail)
			}
			return result, c.out, nil
		})
	}
	add(host.Main, "Runs a task with the main agent of this project.")
	for i := range agents {
		if len(agents[i].Mistakes) == 0 {
			add(agents[i].Name, cmp.Or(agents[i].Description, "Runs a task with the agent "+agents[i].Name+"."))
		}
	}
	return server, nil
}

// ServeMCP serves MCP on a pair of streams, such as standard input and output, until the client
// closes its stream or ctx ends. It also runs turns. The client has all rights of the user who
// started the process, and decides approvals in the name "mcp".
func (s *Server) ServeMCP(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	server, err := s.mcpServer(ctx, &Token{Name: "mcp", Roles: []Role{RoleAdmin}})
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	group.Go(func() { s.host.Share(working) })
	worked := make(chan error, 1)
	go func() { // ends with stop
		if s.worker == nil {
			worked <- nil
			return
		}
		worked <- s.worker.Run(working)
	}()
	err = server.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	if ctx.Err() != nil {
		err = nil
	}
	s.drain()
	stop()
	return errors.Join(err, <-worked)
}

// mcpCall is one call of the tool of an agent.
type mcpCall struct {
	s     *Server
	q     *request
	req   *mcp.CallToolRequest
	agent string
	// watched ends when the token is revoked, and not when the client cancels the call.
	watched context.Context //nolint:containedctx // it belongs to the call

	speech   speech
	progress mcpProgress
	session  string
	at       mcpState
	result   *api.TurnResult
	out      mcpOutput

	mu        sync.Mutex
	turn      string // the id of the turn, when it has begun
	cancelled bool   // the client has cancelled the call
}

// mcpState says where a turn is. A client of the newer protocol sends it back with the answers
// of its user.
type mcpState struct {
	Session string `json:"session"`
	Queued  string `json:"queued"`
	Turn    string `json:"turn,omitempty"`
	After   string `json:"after"`
	// Hashes are the hashes of the inputs that the user was shown, by approval.
	Hashes map[string]string `json:"hashes,omitempty"`
	// Texts are what the agent has said so far.
	Texts []string `json:"texts,omitempty"`
}

// run runs the turn of a call, or continues it with the answers of the user.
func (c *mcpCall) run(ctx context.Context, in *mcpInput) (*mcp.CallToolResult, error) {
	c.progress = mcpProgress{req: c.req}
	watched, stop := c.s.untilRevoked(context.WithoutCancel(ctx), c.q.token)
	defer stop()
	c.watched = watched
	if state := c.req.Params.RequestState; state != "" {
		if waits, err := c.restore(ctx, state); err != nil {
			return nil, err
		} else if waits {
			c.result = &api.TurnResult{Turn: c.at.Turn, Reason: belay.EndParked}
			return c.finish(ctx)
		}
	} else {
		if in.Session != "" {
			if err := c.s.openAISession(ctx, c.q, in.Session); err != nil {
				return nil, err
			}
		}
		started, err := c.s.startIn(ctx, c.q, in.Session, c.agent, "/agent", in.Text)
		if err != nil {
			return nil, err
		}
		c.at = mcpState{Session: started.Session, Queued: started.ID, After: started.After}
	}
	c.session = c.at.Session
	for {
		if err := c.await(ctx); err != nil {
			return nil, err
		}
		if c.result.Reason != belay.EndParked || !c.canAsk() {
			break
		}
		questions, err := c.questions(ctx)
		if err != nil {
			return nil, err
		}
		if c.multiRound() {
			if len(questions) > 0 {
				return c.inputRequired(questions)
			}
			break
		}
		decided, err := c.elicit(ctx, questions)
		if err != nil {
			return nil, err
		}
		if !decided {
			break
		}
	}
	return c.finish(ctx)
}

// restore takes the state and the answers that a client of the newer protocol sends. It reports
// whether the turn still waits for one of the approvals.
func (c *mcpCall) restore(ctx context.Context, state string) (waits bool, err error) {
	if err := json.Unmarshal([]byte(state), &c.at); err != nil {
		return false, invalid("/requestState", "the state of the request is damaged: call the tool again")
	}
	if _, err := c.s.session(ctx, c.q, c.at.Session); err != nil {
		return false, err
	}
	c.speech.steps = c.at.Texts
	for id, hash := range c.at.Hashes {
		decided := false
		if said, ok := c.req.Params.InputResponses[id].(*mcp.ElicitResult); ok {
			if decided, err = c.decide(ctx, id, hash, said); err != nil {
				return false, err
			}
		}
		waits = waits || !decided
	}
	return waits, nil
}

// await waits until the turn has ended or is parked. If the client cancels the call, the turn is
// aborted.
func (c *mcpCall) await(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		c.mu.Lock()
		c.cancelled = true
		turn := c.turn
		c.mu.Unlock()
		if turn != "" {
			c.abort(ctx, turn)
		}
	})()
	var err error
	c.result, err = c.s.follow(c.watched, &followed{session: c.at.Session, queued: c.at.Queued, after: c.at.After, turn: c.at.Turn, token: c.q.token, see: func(e *belay.Event) {
		c.speech.see(e)
		if e == nil {
			return
		}
		c.mu.Lock()
		late := c.turn == "" && c.cancelled // the call was cancelled before the turn began
		c.turn = e.Turn
		c.mu.Unlock()
		if late {
			c.abort(ctx, e.Turn)
		}
		if c.at.Turn = e.Turn; e.Position != "" {
			c.at.After = e.Position
		}
		c.progress.see(ctx, e)
	}})
	if err == nil && c.result == nil {
		err = interrupted(c.at.Session)
	}
	return err
}

// abort aborts the turn of the call, if it is still open.
func (c *mcpCall) abort(ctx context.Context, turn string) {
	ctx = context.WithoutCancel(ctx)
	info, err := c.s.session(ctx, c.q, c.session)
	if err == nil && info.State.Turn != nil && info.State.Turn.ID == turn {
		_, err = abortTurn(ctx, c.s, c.q, &api.AbortTurn{Session: c.session, Turn: turn})
	}
	if err != nil {
		c.s.log.WarnContext(ctx, "cannot abort a turn whose caller has left", "session", c.session, "error", err)
	}
}

// canAsk reports whether the user of the client can decide: the client has forms, and the token
// has the role.
func (c *mcpCall) canAsk() bool {
	params := c.req.Session.InitializeParams()
	if params == nil || params.Capabilities == nil || params.Capabilities.Elicitation == nil || !c.q.token.may(RoleApprove) {
		return false
	}
	forms := params.Capabilities.Elicitation
	return forms.Form != nil || forms.URL == nil
}

func (c *mcpCall) multiRound() bool {
	params := c.req.Session.InitializeParams()
	return params == nil || params.ProtocolVersion >= multiRound
}

// questions lists what the turn waits for and a person can decide.
func (c *mcpCall) questions(ctx context.Context) ([]api.Approval, error) {
	var all []api.Approval
	for question, err := range belay.Questions(ctx, c.s.store, belay.ApprovalFilter{Session: c.at.Session}) {
		if err != nil {
			return nil, err
		}
		if question.ID != "" {
			all = append(all, inspect.ApprovalOf(question))
		}
	}
	return all, nil
}

// form makes the form for an approval or a question.
func form(a *api.Approval) *mcp.ElicitParams {
	if a.Question != "" {
		return &mcp.ElicitParams{Message: a.Question, RequestedSchema: &jsonschema.Schema{
			Type: "object", Properties: map[string]*jsonschema.Schema{"answer": {Type: "string", Title: "Answer"}}, Required: []string{"answer"},
		}}
	}
	return &mcp.ElicitParams{Message: fmt.Sprintf("%s needs approval: %s\n\n%s", a.Tool, a.Reason, a.Input), RequestedSchema: &jsonschema.Schema{
		Type: "object", Required: []string{"decision"},
		Properties: map[string]*jsonschema.Schema{
			"decision": {Type: "string", Title: "Decision", Enum: []any{"approve", "deny"}},
			"reason":   {Type: "string", Title: "Reason", Description: "the agent reads it"},
		},
	}}
}

// inputRequired is the result that asks the user, for clients of the newer protocol.
func (c *mcpCall) inputRequired(questions []api.Approval) (*mcp.CallToolResult, error) {
	asks := make(mcp.InputRequestMap)
	c.at.Hashes, c.at.Texts = make(map[string]string), c.speech.steps
	for i := range questions {
		a := &questions[i]
		asks[a.ID], c.at.Hashes[a.ID] = form(a), a.Hash
	}
	state, err := json.Marshal(c.at)
	if err != nil {
		return nil, fmt.Errorf("encode the state: %w", err)
	}
	return &mcp.CallToolResult{InputRequests: asks, RequestState: string(state)}, nil
}

// elicit asks the user about each approval. It reports whether all are decided. If the user
// does not answer in time, the approval stays open.
func (c *mcpCall) elicit(ctx context.Context, questions []api.Approval) (bool, error) {
	for i := range questions {
		a := &questions[i]
		said, err := c.ask(ctx, form(a))
		if err != nil { // the client failed: the approval stays open
			c.s.log.WarnContext(ctx, "the client did not answer", "approval", a.ID, "error", err)
			return false, nil
		}
		if decided, err := c.decide(ctx, a.ID, a.Hash, said); err != nil || !decided {
			return false, err
		}
	}
	return len(questions) > 0, nil
}

// ask shows a form to the user of the client. It ends when the user answers, when the time is
// over, when the token is revoked, and when the server stops.
func (c *mcpCall) ask(ctx context.Context, form *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	ctx, cancel := context.WithTimeout(ctx, c.s.timeouts.ask)
	defer cancel()
	defer context.AfterFunc(c.watched, cancel)()
	defer context.AfterFunc(c.s.draining, cancel)()
	return c.req.Session.Elicit(ctx, form) //nolint:wrapcheck // the caller logs it
}

// decide takes the answer of the user. It reports false if the user has not decided. If somebody
// else was faster, that decision counts.
func (c *mcpCall) decide(ctx context.Context, id, hash string, said *mcp.ElicitResult) (bool, error) {
	if !c.q.token.may(RoleApprove) {
		return false, problem(http.StatusForbidden, codeForbidden, "the token %q lacks the role %s", c.q.token.Name, RoleApprove)
	}
	in := &api.DecideApproval{Approval: id, Hash: hash, Scope: "once"}
	switch said.Action {
	case "decline":
		in.Reason = "the user declined"
	case "accept":
		word := func(name string) string { text, _ := said.Content[name].(string); return text }
		if answer := word("answer"); answer != "" {
			in.Allow, in.Answer = true, &answer
		} else {
			in.Allow, in.Reason = word("decision") == "approve", word("reason")
		}
	default:
		return false, nil
	}
	_, err := decideApproval(ctx, c.s, c.q, in)
	if errors.Is(err, belay.ErrDecided) {
		err = nil
	}
	return err == nil, err
}

// finish makes the result of the call.
func (c *mcpCall) finish(ctx context.Context) (*mcp.CallToolResult, error) {
	c.progress.flush(ctx)
	r := c.result
	if err := c.s.finish(ctx, &c.speech, c.at.Session, r); err != nil {
		return nil, err
	}
	c.out = mcpOutput{Session: c.at.Session, Turn: r.Turn, Reason: cmp.Or(r.Reason, belay.EndTurn), Text: strings.Join(c.speech.steps, "\n\n"), Why: r.Why, Approvals: r.Approvals}
	text := c.out.Text
	why := failure(r)
	if why != "" {
		text = strings.TrimSpace(text + "\n\nThe turn did not end well: " + why)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: why != ""}, nil
}

// mcpProgress tells the client what the agent does.
type mcpProgress struct {
	req  *mcp.CallToolRequest
	text string // what was not told yet
	seen int    // the number of events so far: progress must increase
	last time.Time
}

// see takes an event of the turn.
func (p *mcpProgress) see(ctx context.Context, e *belay.Event) {
	if p.req.Params.GetProgressToken() == nil {
		return
	}
	switch {
	case e.Kind == belay.EventTextDelta && e.Depth == 0:
		p.text += e.Text
	case e.Kind == belay.EventToolUse && e.Call != nil:
		p.text += "\n[" + e.Call.Tool + "]\n"
	default:
		return
	}
	p.seen++
	if time.Since(p.last) >= progressPause {
		p.flush(ctx)
	}
}

// flush sends what was not told yet.
func (p *mcpProgress) flush(ctx context.Context) {
	if p.text == "" {
		return
	}
	_ = p.req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ // ignore errors: the client has left
		ProgressToken: p.req.Params.GetProgressToken(), Message: p.text, Progress: float64(p.seen),
	})
	p.text, p.last = "", time.Now()
}
