package acp

import (
	"context"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/belay-run/belay/acp/internal/jsonrpc"
)

// client is what the editor said about itself.
type client struct {
	name      string
	forms     bool // it shows forms
	terminals bool // it shows the output of commands that the agent runs
}

// keyMethod is the only way to log in: the user sets up a key for a model.
const keyMethod = "key"

func (e *editor) initialize(p *sdk.InitializeRequest) work {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ready {
		return fails(jsonrpc.Errorf(jsonrpc.CodeRequest, "initialize was already called"))
	}
	e.ready = true
	if info := p.ClientInfo; info != nil {
		e.client.name = info.Name
		if info.Title != nil && *info.Title != "" {
			e.client.name = *info.Title
		}
	}
	caps := &p.ClientCapabilities
	e.client.forms = caps.Elicitation != nil && caps.Elicitation.Form != nil
	e.client.terminals, _ = caps.Meta["terminal_output"].(bool)
	return func(ctx context.Context) (any, error) {
		return &sdk.InitializeResponse{
			ProtocolVersion: sdk.ProtocolVersionNumber,
			AgentInfo:       &sdk.Implementation{Name: e.server.opts.Name, Title: new("Belay"), Version: e.server.opts.Version},
			AgentCapabilities: sdk.AgentCapabilities{
				LoadSession:        true,
				PromptCapabilities: sdk.PromptCapabilities{Image: true, EmbeddedContext: true},
				McpCapabilities:    sdk.McpCapabilities{Http: true},
				SessionCapabilities: sdk.SessionCapabilities{
					List: &sdk.SessionListCapabilities{}, Resume: &sdk.SessionResumeCapabilities{}, Close: &sdk.SessionCloseCapabilities{},
					AdditionalDirectories: &sdk.SessionAdditionalDirectoriesCapabilities{},
				},
			},
			AuthMethods: e.authMethods(ctx),
		}, nil
	}
}

// authMethods says how the user gets a model. It is empty if there is one.
func (e *editor) authMethods(ctx context.Context) []sdk.AuthMethod {
	err := e.server.source.Ready(ctx)
	if err == nil {
		return []sdk.AuthMethod{}
	}
	return []sdk.AuthMethod{{Agent: &sdk.AuthMethodAgent{Id: keyMethod, Name: "Set up a model", Description: new(err.Error())}}}
}

// authenticate checks again whether there is a model. Belay takes keys from the environment
// and from files, never from an editor.
func (e *editor) authenticate(p *sdk.AuthenticateRequest) work {
	if p.MethodId != keyMethod {
		return fails(invalid("there is no authentication method %q: use %q", p.MethodId, keyMethod))
	}
	return func(ctx context.Context) (any, error) {
		if err := e.server.source.Ready(ctx); err != nil {
			return nil, jsonrpc.Errorf(jsonrpc.CodeAuthRequired, "%v", err)
		}
		return &sdk.AuthenticateResponse{}, nil
	}
}
